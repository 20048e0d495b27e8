// Package rendezvous hands an id from rank 0 of a job to the other ranks over TCP, and nothing else: engines whose processes no launcher
// brings together meet by it.
//
// A rank says who it is, and proves that it knows the secret without sending it; rank 0 answers with the id, and proves the same. What else
// connects is turned away. Ranks of an earlier attempt of the job are told so, and rank 0 waits for those of its own.
package rendezvous

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Meeting says who meets where. All ranks have the same but for Rank.
type Meeting struct {
	Address string // of rank 0, host:port
	Rank    int
	Size    int
	Attempt uint32 // how often the job was started again
	Secret  string
}

// magic begins every message; the digit is the version of the protocol.
const magic = "wl-id-1\n"

// Of an exchange: how long it may take, and how long ranks that were not answered wait before the next.
const (
	patience = 10 * time.Second
	pause    = 50 * time.Millisecond
)

// hello is what a rank sends, after it has received rank 0's nonce.
type hello struct {
	Magic               [len(magic)]byte
	Rank, Size, Attempt uint32
	Nonce               [16]byte
	Proof               [sha256.Size]byte
}

// Answers of rank 0, before the id.
const (
	welcome byte = iota
	otherSize
	otherAttempt
	taken
)

var refusals = map[byte]string{otherSize: "it waits for another number of ranks", otherAttempt: "it is of another attempt", taken: "another process has this rank"}

// Share returns the id of rank 0 when this rank has it; rank 0 returns when all have. Errors of ctx are returned with what happened last.
func (m Meeting) Share(ctx context.Context, id []byte) ([]byte, error) {
	if m.Size == 1 {
		return id, nil
	}
	if m.Rank == 0 {
		return id, m.serve(ctx, id)
	}
	var reason error
	for {
		got, err := m.ask(ctx)
		if err == nil {
			return got, nil
		}
		// That there was no more time says less than what rank 0 has said before.
		var n net.Error
		if late := ctx.Err() != nil || errors.As(err, &n) && n.Timeout(); reason == nil || !late {
			reason = err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("rank 0 at %s: %w: %w", m.Address, context.Cause(ctx), reason)
		case <-time.After(pause):
		}
	}
}

// prove says that whoever knows the secret has said this.
func (m Meeting) prove(parts ...[]byte) (p [sha256.Size]byte) {
	h := hmac.New(sha256.New, []byte(m.Secret))
	for _, b := range parts {
		h.Write(b)
	}
	h.Sum(p[:0])
	return p
}

// proof is that of a hello, for the nonce that it answers.
func (m Meeting) proof(h *hello, nonce []byte) [sha256.Size]byte {
	said := binary.BigEndian.AppendUint32(nil, h.Rank)
	said = binary.BigEndian.AppendUint32(said, h.Size)
	said = binary.BigEndian.AppendUint32(said, h.Attempt)
	return m.prove([]byte("rank"), nonce, h.Nonce[:], said)
}

func (m Meeting) ask(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", m.Address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	nonce := make([]byte, 16)
	if _, err := io.ReadFull(c, nonce); err != nil {
		return nil, err
	}
	h := hello{Magic: [len(magic)]byte([]byte(magic)), Rank: uint32(m.Rank), Size: uint32(m.Size), Attempt: m.Attempt}
	rand.Read(h.Nonce[:])
	h.Proof = m.proof(&h, nonce)
	if err := binary.Write(c, binary.BigEndian, &h); err != nil {
		return nil, err
	}
	var head [3]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, fmt.Errorf("turned away, as with another secret: %w", err)
	}
	if why, refused := refusals[head[0]]; refused {
		return nil, errors.New(why)
	}
	id := make([]byte, binary.BigEndian.Uint16(head[1:]))
	var proof [sha256.Size]byte
	if _, err := io.ReadFull(c, id); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(c, proof[:]); err != nil {
		return nil, err
	}
	if want := m.prove([]byte("id"), h.Nonce[:], id); !hmac.Equal(want[:], proof[:]) {
		return nil, errors.New("it does not know the secret")
	}
	_, err = c.Write([]byte{welcome}) // so that rank 0 knows
	return id, err
}

func (m Meeting) serve(ctx context.Context, id []byte) error {
	_, port, err := net.SplitHostPort(m.Address)
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("", port)) // the name may be that of a service in front of this machine
	if err != nil {
		return err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	ready := make(chan int) // ranks that have the id
	done := make(chan struct{})
	defer close(done)
	failed := make(chan error, 1)
	claims := make(chan claim)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				failed <- err
				return
			}
			go func() {
				defer c.Close()
				c.SetDeadline(time.Now().Add(patience))
				if rank, err := m.answer(c, id, claims, done); err == nil {
					select {
					case ready <- rank:
					case <-done:
					}
				}
			}()
		}
	}()
	has := map[int]bool{0: true}
	for len(has) < m.Size {
		select {
		case rank := <-ready:
			has[rank] = true
		case c := <-claims:
			c.free <- !has[c.rank]
		case err := <-failed:
			missing := 0
			for has[missing] {
				missing++
			}
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return fmt.Errorf("rank %d of %d did not come to %s: %w", missing, m.Size, m.Address, err)
		}
	}
	return nil
}

// claim asks whether nobody has a rank yet.
type claim struct {
	rank int
	free chan bool
}

// answer talks with one rank and returns which it is, once it has the id.
func (m Meeting) answer(c net.Conn, id []byte, claims chan<- claim, done <-chan struct{}) (int, error) {
	nonce := make([]byte, 16)
	rand.Read(nonce)
	if _, err := c.Write(nonce); err != nil {
		return 0, err
	}
	var h hello
	if err := binary.Read(c, binary.BigEndian, &h); err != nil {
		return 0, err
	}
	if want := m.proof(&h, nonce); string(h.Magic[:]) != magic || !hmac.Equal(want[:], h.Proof[:]) {
		return 0, errors.New("a stranger")
	}
	status := welcome
	switch {
	case h.Attempt != m.Attempt:
		status = otherAttempt
	case int(h.Size) != m.Size || h.Rank == 0 || h.Rank >= h.Size:
		status = otherSize
	default:
		free := make(chan bool, 1)
		select {
		case claims <- claim{int(h.Rank), free}:
		case <-done:
			return 0, net.ErrClosed
		}
		if !<-free {
			status = taken
		}
	}
	message := binary.BigEndian.AppendUint16([]byte{status}, uint16(len(id)))
	if status == welcome {
		proof := m.prove([]byte("id"), h.Nonce[:], id)
		message = append(append(message, id...), proof[:]...)
	}
	if _, err := c.Write(message); err != nil || status != welcome {
		return 0, errors.Join(err, errors.New(refusals[status]))
	}
	_, err := io.ReadFull(c, message[:1])
	return int(h.Rank), err
}
