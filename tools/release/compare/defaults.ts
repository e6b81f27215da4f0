import type { FileDescriptorSet } from "@bufbuild/protobuf/wkt";
import { ownFiles } from "../../gen/contract.ts";
import { commentsIn } from "./comments.ts";

/**
 * Every documented default of the released contract that the next one no longer says, one sentence each. proto3 has no
 * defaults of its own beside zero, so what absence means is said in comments: "default 10", "0 means 100", "absent means true".
 * They are read from both contracts' comments by the same rule, so a better rule also judges what was released before it.
 */
export function changedDefaults(released: FileDescriptorSet, next: FileDescriptorSet): string[] {
  const nextDefaults = documentedDefaults(next);
  return [...documentedDefaults(released)].flatMap(([name, phrases]) => {
    const kept = nextDefaults.get(name);
    const gone = kept === undefined ? [] : phrases.filter((phrase) => !kept.includes(phrase));
    return gone.map((phrase) => `${name}: ${JSON.stringify(phrase)} was said of it, now ${inWords(kept)}`);
  });
}

/** What is said of each element's absent or zero value; an element of which nothing is said has an empty list. */
function documentedDefaults(contract: FileDescriptorSet): Map<string, string[]> {
  const files = ownFiles(contract);
  if (files.every((file) => (file.sourceCodeInfo?.location.length ?? 0) === 0)) {
    throw new Error("The released contract holds no comments, so its defaults cannot be compared: release it anew");
  }
  return new Map(
    files.flatMap((file) => [...commentsIn(file)].map(([name, comment]) => [name, defaultsIn(comment)] as const)),
  );
}

const clauseEnd = /[.;:()](?:\s|$)|[()]/;
const absence = "absent|empty|unset|not set|without (?:it|one|any)|zero|0|none|no value|omitted";
/** Said of a value that is not there: at the start of a phrase, or as the subject of what it does. */
const ofAbsence = new RegExp(
  `(?:(?:^|, )(?:an? )?(?:${absence})\\b|\\b(?:${absence}) (?:means|=|is|asks|allows|permits)\\b).*`,
);
const ofDefault = /\bdefaults?\b.*/;
/** A limit is a rule, and told by it. */
const limit = /, at (?:most|least) .*/;

/** The phrases of a comment that say a default: in lower case, without marks, as they stand up to the end of their clause. */
export function defaultsIn(comment: string): string[] {
  const text = comment.replaceAll(/[`"]/g, "").replaceAll(/\s+/g, " ").toLowerCase();
  return text.split(clauseEnd).flatMap((clause) => {
    const phrase = (ofAbsence.exec(clause.trim()) ?? ofDefault.exec(clause))?.[0];
    return phrase === undefined ? [] : [phrase.replace(/^, /, "").replace(limit, "").trim()];
  });
}

function inWords(phrases: readonly string[] | undefined): string {
  return phrases === undefined || phrases.length === 0
    ? "nothing is"
    : phrases.map((one) => JSON.stringify(one)).join(" and ");
}
