/** One call of the neighbour: when it began and how long it took, or why it was lost. */
export interface NeighbourCall {
  readonly what: string;
  readonly tookMs: number;
  readonly lost?: string;
}

/** What the process of the neighbour is told, and tells. */
export type ToNeighbour =
  | { readonly kind: "begin"; readonly url: string; readonly key: string }
  | { readonly kind: "take" };
export type FromNeighbour =
  | { readonly kind: "ready" }
  | { readonly kind: "calls"; readonly calls: readonly NeighbourCall[] };

/** The session in which it calls tools of each kind. */
export const neighbourSession = "calm";
