// Package training trains on several ranks at once: each computes gradients of its share of the data, the ranks add them, and all make the
// same step of an optimiser. [Adam] records that into a batch, for a [dist.Group] of any size, also of one.
//
//	adam, err := training.NewAdam(ctx, dev, world.Group, weights, nil, training.Options{})
//	...
//	adam.Record(b, [][]batch.Value{gradients}, step, compute.AdamOptions{LR: 1e-3})
//	plan, err := b.Compile(ctx)
//
// # Buckets
//
// Gradients are sent in buckets, those of the last parameters first: a backward pass has them first, and goes on while they are sent. A
// bucket costs one message where its gradients would cost one each.
//
// # The same bits on any number of ranks
//
// The order in which numbers are added depends on the number of ranks. With [Options].Shards each rank computes the gradients of its
// shards one by one, and the shards' are added in their order: a job then computes the same on 1, 2 and 4 ranks, for as many
// times the traffic as there are shards.
package training
