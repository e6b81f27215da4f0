/**
 * One holder at a time among the processes of a machine; a holder that died is followed by exactly one successor.
 *
 * The directory holds a chain: `holder` names the first holder; `after-<token>` names who followed the dead holder with
 * that token. The end of the chain holds the lock.
 *
 * lock-1  A link in the chain is made whole (written aside, then hard-linked), and linking fails when the name exists:
 *     of many who follow one dead holder, one wins.
 * lock-2  Tokens are never used twice, so a link after a chain that has been released meanwhile joins nothing. Whoever links
 *     walks the chain again from its head, and holds the lock only if it stands at the end.
 * lock-3  Releasing removes the head first: from then on the chain does not exist.
 */
import { randomUUID } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { isErrno, unlessAbsent } from "../../failure/errno.ts";
import { jsonFrom } from "../../schema/json-object.ts";
import { delay } from "../../time/delay.ts";
import { identityOfProcess, isSameProcessAlive, type ProcessIdentity } from "./process-identity.ts";

interface Holder {
  readonly token: string;
  readonly process: ProcessIdentity;
}

interface Link {
  readonly path: string;
  readonly holder: Holder;
}

export interface LockOptions {
  signal?: AbortSignal | undefined;
  /** Told once, when somebody else holds the lock. */
  onWait?: ((pid: number) => void) | undefined;
}

const pollMs = 25;

/** Waits until this process holds the lock; disposing releases it. */
export async function openLockDirectory(directory: string, options: LockOptions = {}): Promise<AsyncDisposable> {
  await mkdir(directory, { recursive: true });
  const process_ = identityOfProcess(process.pid);
  const holder: Holder = { token: randomUUID(), process: process_ ?? { pid: process.pid, startedAt: "" } };
  const claim = join(directory, `claim-${holder.token}`);
  try {
    await writeFile(claim, JSON.stringify(holder));
    await waitForTurn(directory, claim, holder, options);
  } catch (error) {
    await rm(claim, { force: true });
    throw error;
  }
  return { [Symbol.asyncDispose]: () => release(directory, claim) };
}

async function waitForTurn(directory: string, claim: string, holder: Holder, options: LockOptions): Promise<void> {
  let hasTold = false;
  for (;;) {
    options.signal?.throwIfAborted();
    const last = (await readChain(directory)).at(-1);
    if (last?.holder.token === holder.token) return;
    const isFree = last === undefined || !isSameProcessAlive(last.holder.process);
    if (isFree) {
      const name = last === undefined ? "holder" : `after-${last.holder.token}`;
      if (await follow(directory, claim, name, holder)) return;
    } else {
      if (!hasTold) options.onWait?.(last.holder.process.pid);
      hasTold = true;
      await delay(pollMs, options.signal);
    }
  }
}

/** lock-1 and lock-2: links, then looks whether the link stands at the end of the chain. */
async function follow(directory: string, claim: string, name: string, holder: Holder): Promise<boolean> {
  const path = join(directory, name);
  try {
    await link(claim, path);
  } catch (error) {
    if (isErrno(error, "EEXIST")) return false;
    throw error;
  }
  const last = (await readChain(directory)).at(-1);
  if (last?.holder.token === holder.token) return true;
  await rm(path, { force: true });
  return false;
}

async function readChain(directory: string): Promise<Link[]> {
  const chain: Link[] = [];
  let path = join(directory, "holder");
  for (;;) {
    const holder = await readHolder(path);
    if (holder === undefined) return chain;
    chain.push({ path, holder });
    path = join(directory, `after-${holder.token}`);
  }
}

async function readHolder(path: string): Promise<Holder | undefined> {
  const text = await readFile(path, "utf8").catch(unlessAbsent);
  const lost = { token: basename(path), process: { pid: 0, startedAt: "" } }; // the machine ended before it was on the disk
  return text === undefined ? undefined : ((jsonFrom(text) as Holder | undefined) ?? lost);
}

/** lock-3. Claims of dead predecessors go with their links. */
async function release(directory: string, claim: string): Promise<void> {
  for (const { path, holder } of await readChain(directory)) {
    await rm(path, { force: true });
    await rm(join(directory, `claim-${holder.token}`), { force: true });
  }
  await rm(claim, { force: true });
}
