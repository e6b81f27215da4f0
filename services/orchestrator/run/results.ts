import type { FunctionCall } from "#gen/toolbus/run/v1/run_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";

/** The results of a turn's calls, by their ids. */
export type Results = Pick<ReadonlyMap<string, ToolResult>, "get" | "has" | "values" | "size">;

export const noResults: Results = new Map();

interface Stored {
  readonly index: number;
  readonly result: ToolResult;
}

/**
 * Results with one more, whose call has none yet; the former ones stay as they are. They share what they hold, of which each
 * sees as much as it had: what a result costs does not grow with those before it.
 */
export function withOneMore(results: Results, callId: string, result: ToolResult): Results {
  const mayShare = results instanceof SharedResults && results.isLatest();
  const stored = mayShare ? results.stored : copyOf(results);
  stored.set(callId, { index: stored.size, result });
  return new SharedResults(stored, stored.size);
}

function copyOf(results: Results): Map<string, Stored> {
  const entries = results instanceof SharedResults ? results.entries() : (results as ReadonlyMap<string, ToolResult>);
  return new Map([...entries].map(([callId, result], index) => [callId, { index, result }]));
}

class SharedResults implements Results {
  readonly stored: Map<string, Stored>;
  readonly size: number;

  constructor(stored: Map<string, Stored>, size: number) {
    this.stored = stored;
    this.size = size;
  }

  isLatest(): boolean {
    return this.stored.size === this.size;
  }

  get(callId: string): ToolResult | undefined {
    const found = this.stored.get(callId);
    return found !== undefined && found.index < this.size ? found.result : undefined;
  }

  has(callId: string): boolean {
    return this.get(callId) !== undefined;
  }

  values(): MapIterator<ToolResult> {
    return this.stored
      .values()
      .take(this.size)
      .map(({ result }) => result) as MapIterator<ToolResult>;
  }

  entries(): Iterable<[string, ToolResult]> {
    return this.stored
      .entries()
      .take(this.size)
      .map(([callId, { result }]) => [callId, result]);
  }
}

const idsByCalls = new WeakMap<readonly FunctionCall[], ReadonlySet<string>>();

/** The ids of a turn's calls, worked out once. */
export function idsOf(calls: readonly FunctionCall[]): ReadonlySet<string> {
  const known = idsByCalls.get(calls) ?? new Set(calls.map(({ callId }) => callId));
  idsByCalls.set(calls, known);
  return known;
}
