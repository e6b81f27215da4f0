export interface OwnershipOptions<R extends AsyncDisposable, A> {
  /** What is owned, as one token: "connection", "worker". */
  kind: string;
  /** This process among those of its service. */
  instance: string;
  /** Opens the resource after the key was won. Its failure gives the key back and reaches all who wait for it. */
  open: (key: string, argument: A) => Promise<R>;
  /** What failed with nobody waiting for it: a resource that would not close, a sweep. */
  onError?: ((error: unknown, key?: string) => void) | undefined;
  /** How long an owner may say nothing; 1 s unless told. */
  silenceMs?: number | undefined;
}

export type Here<R> = { kind: "here"; resource: R };
/** Forward to `instanceService(service, instance)`; there, ask `acquire`, which joins an opening. */
export type There = { kind: "there"; instance: string };

export interface WaitOptions {
  /** Ends this waiting; an opening that others wait for goes on. */
  signal?: AbortSignal | undefined;
}
