import type { DescEnum } from "@bufbuild/protobuf";

/** A value of an enum as one word: RUN_END_REASON_MAX_TURNS is `max_turns`. */
export function wordOf(schema: DescEnum, value: number): string {
  return (schema.value[value]?.localName ?? String(value)).toLowerCase();
}
