// Errors are a dictionary: every refusal has a reason of the contract, and every reason of the contract is somebody's refusal.

import { describe, expect, it } from "vitest";
import { Reason } from "#gen/toolbus/error/v1/error_pb.ts";
import { type SourceFile, sourceFilesBelow } from "./source-files.ts";

const files = ["runtime", "services", "cli"].flatMap((folder) =>
  sourceFilesBelow(folder).filter((file) => !file.isTest),
);

const reasons = new Set(Object.keys(Reason).filter((name) => name !== "UNSPECIFIED"));

/** What is made to be thrown, without what is only compared with. */
function raisedIn({ text }: SourceFile): string[] {
  const made = text.replace(/[!=]== "[A-Z_]+"/g, "");
  return [...made.matchAll(/"([A-Z]+(?:_[A-Z]+)*)"/g)].map(([, name = ""]) => name);
}

/** Where the errors of the wire are made out of failures, and where one that came is passed on. */
const makers = ["runtime/failure/connect.ts", "runtime/rpc/nats/frame/error-frame.ts", "services/gateway/proxy.ts"];

describe("the dictionary of errors", () => {
  it("has no reason that nothing raises", () => {
    const raised = new Set(files.flatMap(raisedIn));
    expect(files.length).toBeGreaterThan(300);
    expect(reasons.size).toBeGreaterThan(50);
    expect([...reasons].filter((name) => !raised.has(name))).toEqual([]);
  });

  it("has every reason that is raised", () => {
    const raised = files.flatMap(({ path, text }) =>
      [...text.matchAll(/\breason: "([A-Z_]+)"/g)].map(([, name = ""]) => ({ path, name })),
    );
    expect(raised.length).toBeGreaterThan(150);
    expect(raised.filter(({ name }) => !reasons.has(name))).toEqual([]);
  });

  it("is used by all who refuse: an error of the wire is made in one place, which asks for the reason", () => {
    const others = files.filter(({ path, text }) => text.includes("new ConnectError(") && !makers.includes(path));
    expect(others.map(({ path }) => path)).toEqual([]);
    const silent = files.filter(
      ({ path, text }) => text.includes('reason: "UNSPECIFIED"') && !path.startsWith("runtime/failure/"),
    );
    expect(silent.map(({ path }) => path)).toEqual([]);
  });
});
