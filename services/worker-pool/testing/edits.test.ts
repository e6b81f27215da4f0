import { execFile } from "node:child_process";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { HEAD, openTestWorkers, type TestWorkers } from "./workers.ts";

const execFileAsync = promisify(execFile);

/** A package of one module, as a wheel that needs no network. */
const WHEEL = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + "/thing-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("thing.py", "WORD = 'it is there'")
    wheel.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: thing\\nVersion: 1.0\\n")
    wheel.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("thing-1.0.dist-info/RECORD", "")
`;

const NAP = `
import os, sys, time
def nap():
    open(__file__ + ".napping", "w").close()
    while not os.path.exists(__file__ + ".go"):
        time.sleep(0.02)
    return 1
def version():
    return VERSION
`;

async function napping({ directory, call }: TestWorkers, name: string) {
  const answer = call(`${name}.nap`);
  await until(() =>
    access(join(directory, `${name}.py.napping`)).then(
      () => true,
      () => false,
    ),
  );
  return { answer };
}

async function edited(workers: TestWorkers, file: string, text: string): Promise<void> {
  await workers.write(file, text);
  const name = file.replace(/\.py$/, "");
  await until(async () => (await workers.call(`${name}.version`)).result === 2);
}

test("WORK-5 an edited file gets an environment of its own: calls of the version before keep what they import", async () => {
  await using workers = await openTestWorkers({ "tool.py": HEAD });
  await execFileAsync("python3", ["-c", WHEEL, workers.directory]);
  const wheel = `thing @ file://${workers.directory}/thing-1.0-py3-none-any.whl`;
  const late = NAP.replace("return 1", "import thing\n    return thing.WORD");
  await workers.write("tool.py", `# /// script\n# dependencies = ["${wheel}"]\n# ///\nVERSION = 1\n${late}`);
  await until(async () => (await workers.call("tool.version").catch(() => undefined))?.result === 1);
  const { answer } = await napping(workers, "tool");
  await edited(workers, "tool.py", `${HEAD}VERSION = 2\n${NAP}`);
  await workers.write("tool.py.go", "");
  expect((await answer).result).toBe("it is there");
}, 60_000);

test("WORK-10 a full pool whose old version of a file still works makes room for a third file", async () => {
  const environment = { TOOLBUS_POOL_WORKERS: "2" };
  const third = `${HEAD}def f(): return 3\n`;
  await using workers = await openTestWorkers(
    { "tool.py": `${HEAD}VERSION = 1\n${NAP}`, "third.py": third },
    environment,
  );
  const { answer } = await napping(workers, "tool");
  await edited(workers, "tool.py", `${HEAD}VERSION = 2\n${NAP}`);
  expect((await workers.call("third.f", {}, { timeoutMs: 10_000 })).result).toBe(3);
  await workers.write("tool.py.go", "");
  expect((await answer).result).toBe(1);
}, 60_000);
