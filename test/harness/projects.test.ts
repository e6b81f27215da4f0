import { expect, test } from "vitest";
import { sourceFilesBelow } from "../architecture/source-files.ts";
import { testsByProject } from "./projects.ts";

const { pure, broker, system, isolated } = testsByProject();

test("each test file belongs to exactly one project, but for those that need a browser", () => {
  const folders = ["runtime", "services", "cli", "console", "sdk", "tools", "examples", "bench", "test"];
  const paths = folders.flatMap((folder) => sourceFilesBelow(folder)).map(({ path }) => path);
  const tests = paths.filter((path) => path.endsWith(".test.ts") && !path.startsWith("console/testing/"));
  expect([...pure, ...broker, ...system, ...isolated].sort()).toEqual(tests.sort());
  for (const project of [pure, broker, system, isolated]) expect(project.length).toBeGreaterThan(20);
});

test("a test that starts a process, or whose harness does, is not pure", () => {
  expect(broker).toContain("runtime/bus/bus.test.ts");
  expect(broker).toContain("runtime/lifecycle/child-process/child-process.test.ts");
  expect(system).toContain("test/system/operation/up.test.ts");
  expect(system, "through bench/").toContain("test/system/runs/parked.test.ts");
});

test("a test that replaces the clock has a worker of its own, as other files share theirs", () => {
  expect(isolated).toContain("runtime/time/long-waits.test.ts");
});

test("a test that may take minutes is before those that may not, so that it is not the last, and alone", () => {
  const placeOf = (name: string) => system.findIndex((path) => path.endsWith(name));
  expect(placeOf("/attack.test.ts")).toBeLessThan(placeOf("/cli.test.ts"));
  expect(placeOf("/caller-patience.test.ts")).toBeLessThan(placeOf("/cli.test.ts"));
});
