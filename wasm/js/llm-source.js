/** Where the bytes of a model are: a source has size and read(offset, length), which is a promise of a Uint8Array. */

import { ArgumentError, UnavailableError } from "./errors.js";
import { bytesOf, describe } from "./message.js";

const ahead = 4 << 20; // bytes that are asked for at once where fewer are wanted

/** What a model may be as a source. Addresses are absolute. Progress gets an object of stage, done and total, which may be null. */
export async function sourceOf(model, { cache, signal, progress }) {
  if (typeof model === "string") return ofAddress(new URL(model), cache, signal, progress);
  if (isBlob(model)) return ofBlob(model);
  const bytes = bytesOf(model, "load: model");
  return { size: bytes.length, read: async (at, n) => bytes.subarray(at, at + n) };
}

export const isBlob = (x) => typeof x?.slice === "function" && typeof x.arrayBuffer === "function" && typeof x.size === "number";

const ofBlob = (blob) => ({
  size: blob.size, read: async (at, n) => new Uint8Array(await blob.slice(at, at + n).arrayBuffer()),
});

async function ofAddress(url, cache, signal, progress) {
  if (url.protocol === "file:") return ofFile(url);
  if (cache) {
    const folder = await storage();
    const file = folder && (await stored(folder, url.href, signal, progress));
    if (file) return ofBlob(file);
  }
  return ranges(url, signal, progress);
}

async function ofFile(url) {
  const { open } = await import(/* @vite-ignore */ /* webpackIgnore: true */ "node:fs/promises");
  const file = await open(url);
  return {
    size: (await file.stat()).size,
    async read(at, n) {
      const { buffer, bytesRead } = await file.read(new Uint8Array(n), 0, n, at);
      return buffer.subarray(0, bytesRead);
    },
    close: () => file.close(),
  };
}

function checkOK(response) {
  if (response.ok) return response;
  throw Object.assign(new UnavailableError(`load: ${response.url}: ${response.status} ${response.statusText}`), { refused: true });
}

/** Where a part of a whole begins, and the bytes of the whole; null if the server does not say or a page may not know. */
function partOf(response) {
  const match = /^bytes (\d+)-\d+\/(\d+)$/.exec(response.headers.get("content-range") ?? "");
  return response.status === 206 && match ? { from: Number(match[1]), total: Number(match[2]) } : null;
}

/** Calls f with each piece of a body. */
async function pieces(response, f) {
  const reader = response.body.getReader();
  for (let r = await reader.read(); !r.done; r = await reader.read()) f(r.value);
}

function lengthOf(response) {
  const n = response.headers.get("content-length");
  return n && !response.headers.get("content-encoding") ? Number(n) : null;
}

/** All of a body, in memory that the browser may move to its disk. */
export async function collected(response, progress) {
  const total = lengthOf(checkOK(response));
  const parts = [];
  let done = 0;
  await pieces(response, (bytes) => {
    parts.push(bytes);
    progress({ stage: "download", done: (done += bytes.length), total });
  });
  return new Blob(parts);
}

/** Reads a file by ranges as they are wanted, or all of it first from a server that knows none. */
async function ranges(url, signal, progress) {
  const get = (at, n) => fetch(url, { signal, headers: { range: `bytes=${at}-${at + n - 1}` } });
  const first = checkOK(await get(0, ahead));
  const whole = partOf(first);
  if (!whole) {
    if (first.status === 200) return ofBlob(await collected(first, progress));
    await first.body?.cancel();
    return ofBlob(await collected(await fetch(url, { signal }), progress));
  }
  let start = 0, buffer = new Uint8Array(await first.arrayBuffer());
  const range = async (at, n) => {
    const response = checkOK(await get(at, n));
    const part = partOf(response);
    if (part?.from !== at || part.total !== whole.total) throw new UnavailableError(`load: ${url}: the file has changed`);
    return new Uint8Array(await response.arrayBuffer());
  };
  return {
    size: whole.total,
    async read(at, n) {
      if (n >= ahead) return range(at, n);
      if (at < start || at + n > start + buffer.length) {
        buffer = await range(at, Math.min(ahead, whole.total - at));
        start = at;
      }
      return buffer.subarray(at - start, at - start + n);
    },
  };
}

// What was loaded by address lies in the origin's private file system: <digest of the address>.gguf, and beside it a .json that says
// what it is. Files are written through handles that only workers have; elsewhere nothing is stored.

const folderName = "wavelane-llm";

async function root() {
  try {
    return (await globalThis.navigator?.storage?.getDirectory?.()) ?? null;
  } catch {
    return null; // private windows have none
  }
}

async function storage() {
  if (!globalThis.FileSystemFileHandle?.prototype.createSyncAccessHandle) return null;
  return (await root())?.getDirectoryHandle(folderName, { create: true });
}

async function nameOf(address) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(address));
  return Array.from(new Uint8Array(digest), (x) => x.toString(16).padStart(2, "0")).join("");
}

async function readAbout(folder, name) {
  try {
    return JSON.parse(await (await (await folder.getFileHandle(`${name}.json`)).getFile()).text());
  } catch {
    return null; // not there, or not written to its end
  }
}

async function writeAbout(folder, name, about) {
  const handle = await (await folder.getFileHandle(`${name}.json`, { create: true })).createSyncAccessHandle();
  try {
    handle.truncate(handle.write(new TextEncoder().encode(JSON.stringify(about)), { at: 0 }));
  } finally {
    handle.close();
  }
}

const versionOf = (response) => response.headers.get("etag") ?? response.headers.get("last-modified");

/** The file of an address, from the storage, or into it. Null where another tab writes it at this moment. */
async function stored(folder, url, signal, progress) {
  const name = await nameOf(url);
  const data = await folder.getFileHandle(`${name}.gguf`, { create: true });
  let about = await readAbout(folder, name);
  if (about?.complete && (await unchanged(url, about, signal))) return data.getFile();
  let handle;
  try {
    handle = await data.createSyncAccessHandle();
  } catch {
    return null;
  }
  let at = handle.getSize();
  if (about?.complete !== false || at >= about.size) at = 0; // else it is a beginning
  try {
    for (let failures = 0; ; ) {
      const before = at;
      try {
        const response = checkOK(await fetch(url, { signal, headers: at > 0 ? { range: `bytes=${at}-` } : {} }));
        const part = partOf(response);
        const version = versionOf(response);
        if (at > 0 && (part?.from !== at || part.total !== about.size || version !== about.version)) {
          at = 0;
          if (response.status === 206) { // of another file than the beginning
            await response.body.cancel();
            continue;
          }
        }
        if (at === 0) {
          handle.truncate(0);
          about = { url, version, size: lengthOf(response), complete: false };
          await writeAbout(folder, name, about);
        }
        await pieces(response, (bytes) => {
          at += handle.write(bytes, { at });
          progress({ stage: "download", done: at, total: about.size });
        });
        if (about.size !== null && at < about.size) throw new UnavailableError(`load: ${url} ended after ${at} of ${about.size} bytes`);
        break;
      } catch (error) {
        // A connection that breaks is taken up again, unless several in a row have brought nothing.
        failures = at > before ? 0 : failures + 1;
        if (signal?.aborted || error.name === "QuotaExceededError" || error.refused || failures > 2) throw error;
      }
    }
    handle.flush();
    await writeAbout(folder, name, { ...about, size: at, complete: true });
  } catch (error) {
    if (error.name !== "QuotaExceededError") throw error;
    handle.truncate(0);
    throw new UnavailableError(`load: the browser's storage has no room for ${url}; with cache: false it is loaded without`, { cause: error });
  } finally {
    handle.close();
  }
  return data.getFile();
}

/** Whether a server still has what was stored. One that cannot be reached, or does not say, changes nothing. */
async function unchanged(url, about, signal) {
  try {
    const response = await fetch(url, { method: "HEAD", signal });
    const size = lengthOf(response);
    return !response.ok || ((size ?? about.size) === about.size && (versionOf(response) ?? about.version) === about.version);
  } catch (error) {
    if (signal?.aborted) throw error;
    return true;
  }
}

/** What is stored: addresses, bytes, and whether they are all. */
export async function cached() {
  const list = [];
  const folder = await existing();
  for await (const file of folder?.keys() ?? []) {
    const name = file.replace(/\.json$/, "");
    const about = name !== file && (await readAbout(folder, name));
    if (about) list.push({ url: about.url, bytes: (await (await folder.getFileHandle(`${name}.gguf`)).getFile()).size, complete: about.complete });
  }
  return list;
}

/** Removes what is stored of an address, if anything is. */
export async function uncache(url) {
  if (typeof url !== "string" && !(url instanceof URL)) throw new ArgumentError(`uncache: ${describe(url)} is no address`);
  const name = await nameOf(new URL(url, globalThis.location?.href).href);
  const folder = await existing();
  const files = [];
  for await (const file of folder?.keys() ?? []) if (file.startsWith(name)) files.push(file);
  for (const file of files) await folder.removeEntry(file);
}

/** The folder, if anything was stored. */
async function existing() {
  try {
    return (await (await root())?.getDirectoryHandle(folderName)) ?? null;
  } catch {
    return null;
  }
}
