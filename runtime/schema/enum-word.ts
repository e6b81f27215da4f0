import type { DescEnum } from "@bufbuild/protobuf";

/** A value of an enum as one word: RUN_END_REASON_MAX_TURNS is `max_turns`. A value that this build does not know is its number. */
export function enumWord(schema: DescEnum, value: number): string {
  return (schema.value[value]?.localName ?? String(value)).toLowerCase();
}
