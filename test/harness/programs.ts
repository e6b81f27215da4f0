import { dirname, join } from "node:path";
import { projectRoot } from "../architecture/source-files.ts";

/** The tarball of the package whose programs the tests of this run start; undefined where they start those of the sources. */
export function testedTarball(): string | undefined {
  return process.env.TESTED_PACKAGE;
}

/** The path of a program, such as `cli/main`. */
export function programOf(name: string): string {
  return join(programFolder(), `${name}.${testedTarball() === undefined ? "ts" : "js"}`);
}

/** Where `cli`, `runtime` and `services` are. */
export function programFolder(): string {
  const tarball = testedTarball();
  return tarball === undefined ? projectRoot : join(dirname(tarball), "toolbus");
}
