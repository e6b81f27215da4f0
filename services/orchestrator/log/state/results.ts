import type { FunctionCall } from "#gen/toolbus/run/v1/run_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";

/** What is known of a turn's calls, by their ids: their results by default. */
export type Results<T = ToolResult> = Pick<ReadonlyMap<string, T>, "get" | "has" | "values" | "size">;

export const noResults: Results<never> = new Map<string, never>();

interface Stored<T> {
  readonly index: number;
  readonly result: T;
}

/**
 * Results with one more, whose call has none yet; the former ones stay as they are. They share what they hold, of which each
 * sees as much as it had: what a result costs does not grow with those before it.
 */
export function withOneMore<T>(results: Results<T>, callId: string, result: T): Results<T> {
  const mayShare = isShared(results) && results.isLatest();
  const stored = mayShare ? results.stored : copyOf(results);
  stored.set(callId, { index: stored.size, result });
  return new SharedResults(stored, stored.size);
}

function isShared<T>(results: Results<T>): results is SharedResults<T> {
  return results instanceof SharedResults;
}

function copyOf<T>(results: Results<T>): Map<string, Stored<T>> {
  const entries = isShared(results) ? results.entries() : (results as ReadonlyMap<string, T>);
  return new Map([...entries].map(([callId, result], index) => [callId, { index, result }]));
}

class SharedResults<T> implements Results<T> {
  readonly stored: Map<string, Stored<T>>;
  readonly size: number;

  constructor(stored: Map<string, Stored<T>>, size: number) {
    this.stored = stored;
    this.size = size;
  }

  isLatest(): boolean {
    return this.stored.size === this.size;
  }

  get(callId: string): T | undefined {
    const found = this.stored.get(callId);
    return found !== undefined && found.index < this.size ? found.result : undefined;
  }

  has(callId: string): boolean {
    return this.get(callId) !== undefined;
  }

  values(): MapIterator<T> {
    return this.stored
      .values()
      .take(this.size)
      .map(({ result }) => result) as MapIterator<T>;
  }

  entries(): Iterable<[string, T]> {
    return this.stored
      .entries()
      .take(this.size)
      .map(([callId, { result }]) => [callId, result]);
  }
}

const idsByCalls = new WeakMap<readonly FunctionCall[], ReadonlySet<string>>();

/** The ids of a turn's calls, worked out once. */
export function idsOf(calls: readonly FunctionCall[]): ReadonlySet<string> {
  return getOrInsertComputed(idsByCalls, calls, () => new Set(calls.map(({ callId }) => callId)));
}
