import type { SourceStatus } from "#gen/toolbus/tool/v1/source_pb.ts";

/** Of all sources together; each is bounded by its provider. */
const MAX_LENGTH = 32_768;

/** What sources with tools that the model may call say of their use, each under its name: a third party wrote it, not the agent's author. */
export function instructionsOfSources(
  { sources }: { readonly sources: readonly SourceStatus[] },
  tools: readonly { readonly reference: string; readonly callable: boolean }[],
): string {
  const callable = tools.filter((tool) => tool.callable).map(({ reference }) => reference);
  let left = MAX_LENGTH;
  return sources
    .flatMap(({ source, instructions }) => {
      const isInUse = instructions !== "" && callable.some((reference) => reference.startsWith(`@${source}/`));
      if (!isInUse || instructions.length > left) return [];
      left -= instructions.length;
      return [`[What the tool source ${source} says of the use of its tools]\n${instructions}`];
    })
    .join("\n\n");
}
