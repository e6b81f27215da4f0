/**
 * That each requirement is either shown by tests or said to be open, part by part. The data stand in `proofs/`, a file a family;
 * here they are held to the tree. A test that is renamed or taken away is named below with the requirement that cites it.
 */

import { describe, expect, test } from "vitest";
import { treePaths } from "../../tools/check/tree-files.ts";
import { projectRoot } from "../architecture/source-files.ts";
import type { Part } from "./proofs/proof.ts";
import { entries, proofs } from "./proofs/proofs.ts";
import { requirementIds, requirementPattern } from "./proofs/requirements.ts";
import { specifications } from "./proofs/specifications.ts";
import { type DeclaredTest, declaredTests, isSkipped, looksAtSomething, readTestFile } from "./test-titles.ts";

const isTest = /\.test\.ts$|\/tests\/test_\w+\.py$|^(?:tools\/check\/checks|examples\/clients\/clients)\.ts$/;
const testFiles = (await treePaths(projectRoot, (path) => isTest.test(path))).map(readTestFile);
const declared = testFiles.flatMap(declaredTests);

const nameOf = ({ group, title }: DeclaredTest) => `${group} ${title}`.trim();

/** What is wrong with a citation, or nothing. */
function faultOf(words: string): string | undefined {
  const [found, another] = declared.filter((one) => nameOf(one).includes(words));
  if (found === undefined) return `no test is called "${words}"; ${closest(words)}`;
  if (another !== undefined)
    return `"${words}" stands in ${found.file} and in ${another.file}: cite more of the title, its group's before it`;
  return looksAtSomething(found) ? undefined : `${found.file}: "${nameOf(found)}" looks at nothing`;
}

/** The title that shares most words, for who has to mend the citation. */
function closest(words: string): string {
  const wanted = new Set(words.split(/\W+/));
  const likeness = (one: DeclaredTest) => {
    const own = new Set(nameOf(one).split(/\W+/));
    return own.intersection(wanted).size / own.union(wanted).size;
  };
  const [best] = declared.toSorted((one, other) => likeness(other) - likeness(one));
  return `the closest is "${best && nameOf(best)}" of ${best?.file}`;
}

function faultsOf(part: Part): string[] {
  if (part.kind === "open") {
    const isSentence = /^[A-Z`].{10,}[^.]\.$/.test(part.missing);
    return isSentence ? [] : [`"${part.claim}" is open: say in one sentence what is missing`];
  }
  if (part.citations.length === 0) return [`"${part.claim}" is shown by no test: cite one, or list it as open`];
  return part.citations.flatMap((citation) => faultOf(citation) ?? []);
}

describe("what is required", () => {
  test("is the list of requirements, each once", () => {
    expect(entries.map(([id]) => id).toSorted()).toEqual(requirementIds.toSorted());
  });

  test.each(entries)("%s: each part is shown by tests that look at something, or is open by name", (_, parts) => {
    expect(parts.length).toBeGreaterThan(0);
    const claims = parts.map(({ claim }) => claim);
    expect(claims).toEqual([...new Set(claims)]);
    expect(parts.flatMap(faultsOf)).toEqual([]);
  });

  test("is named by titles of tests only as it is listed here", () => {
    expect(declared.length).toBeGreaterThan(1_000);
    const faults = declared.flatMap((one) =>
      (nameOf(one).match(requirementPattern) ?? []).flatMap((id) => {
        if (!requirementIds.includes(id)) return [`${one.file}: "${nameOf(one)}" names ${id}, which is no requirement`];
        const isOpen = proofs[id]?.every(({ kind }) => kind === "open") ?? false;
        return isOpen ? [`${one.file}: "${nameOf(one)}" names ${id}, of which everything is listed as open`] : [];
      }),
    );
    expect(faults).toEqual([]);
  });

  test("is tested by tests of which none is skipped", () => {
    expect(testFiles.length).toBeGreaterThan(100);
    expect(testFiles.filter(isSkipped).map(({ path }) => path)).toEqual([]);
    expect(declared.filter((one) => !looksAtSomething(one)).map(nameOf)).toEqual([]);
  });
});

describe.each(Object.entries(specifications))("%s", (_, scenarios) => {
  test.each(Object.entries(scenarios))("%s: stands in parts of requirements", (_scenario, references) => {
    expect(references.length).toBeGreaterThan(0);
    const faults = references.flatMap((reference) => {
      const [, id = "", words = ""] = /^(\S+) (.+)$/.exec(reference) ?? [];
      const found = (proofs[id] ?? []).filter(({ claim }) => claim.includes(words));
      return found.length === 1 ? [] : [`${found.length} parts of ${id || "no requirement"} are about "${words}"`];
    });
    expect(faults).toEqual([]);
  });
});
