import type { Source } from "#gen/toolbus/tool/v1/source_pb.ts";

/** What a provider whose tools belong to no source says of the sources that it is asked for. */
export function refusedSources(what: string, sources: readonly Pick<Source, "name">[]) {
  const reason = `${what} are offered without a source`;
  return { tools: [], sources: sources.map(({ name }) => ({ source: name, available: false, reason })) };
}
