import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { projectRoot } from "../gen/command.ts";
import { imageFrom, ownFiles } from "../gen/contract.ts";
import { messageOf, openWorkspace, protoFile, type Workspace } from "../gen/testing/workspace.ts";
import { breakagesBetween, breakagesOf, changedDefaultsOf, tightenedRulesOf } from "./compare/breakages.ts";
import { releasedContract, releasedImage } from "./image.ts";
import { importsOfInternal } from "./internal.ts";
import { type ReleaseOptions, releaseContract } from "./release.ts";
import { releasedVersion, versionFaults, versionsIn } from "./version.ts";

let workspace: Workspace;
let root: string;

beforeEach(async () => {
  workspace = await openWorkspace();
  root = workspace.root;
  await workspace.write("proto/CHANGELOG.md", unreleased);
});

afterEach(() => workspace[Symbol.asyncDispose]());

const unreleased = "# Changelog\n\n## [Unreleased]\n\n- A greeting.\n";
const text = "  // What is said; empty means hello.\n  string text = 1;\n";
const tone = "  // How it is said.\n  string tone = 2;\n";
const greetingPath = "proto/toolbus/greeting/v1/greeting.proto";
const internalPath = "proto/toolbus/internal/greeting/v1/delivery.proto";

const greeting = (fields: string, version = 1) =>
  protoFile(`toolbus.greeting.v${version}`, messageOf("Greeting", fields), [
    ...(fields.includes("buf.validate") ? ["buf/validate/validate.proto"] : []),
  ]);
const writeGreeting = (fields: string) => workspace.write(greetingPath, greeting(fields));
const release = (options: Partial<ReleaseOptions> = {}) => releaseContract(root, { day: "2030-01-02", ...options });

describe("the released contract", () => {
  test("a field that is deleted breaks it, by name", async () => {
    await writeGreeting(text + tone);
    await release();
    expect(await breakagesOf(root)).toEqual([]);
    await writeGreeting(text);
    expect((await breakagesOf(root)).join("\n")).toMatch(
      /field "2" with name "tone" on message "Greeting" was deleted/,
    );
  });

  test("a field that is renamed or gets another type breaks it; one that is added does not", async () => {
    await writeGreeting(text);
    await release();
    await writeGreeting(text + tone);
    expect(await breakagesOf(root)).toEqual([]);
    await writeGreeting(text.replace("string text", "string words"));
    expect((await breakagesOf(root)).join("\n")).toMatch(/changed name from "text" to "words"/);
    await writeGreeting(text.replace("string text", "int32 text"));
    expect((await breakagesOf(root)).join("\n")).toMatch(/changed type from "string" to "int32"/);
  });

  test("a field's JSON name that changes breaks it, and so does a message that moves to another file", async () => {
    await writeGreeting(text);
    await release();
    await writeGreeting(text.replace("text = 1", 'text = 1 [json_name = "words"]'));
    expect((await breakagesOf(root)).join("\n")).toMatch(/changed option "json_name" from "text" to "words"/);
    await writeGreeting(text);
    await workspace.write("proto/toolbus/greeting/v1/other.proto", greeting(text));
    await workspace.write(greetingPath, greeting(text).replaceAll("Greeting", "Farewell"));
    expect((await breakagesOf(root)).join("\n")).toMatch(/message "Greeting" was deleted from file/);
  });

  test("a file that is deleted breaks it", async () => {
    await writeGreeting(text);
    await release();
    await workspace.remove(greetingPath);
    await workspace.write("proto/toolbus/farewell/v1/farewell.proto", greeting(text).replace("greeting", "farewell"));
    expect((await breakagesOf(root)).join("\n")).toMatch(/Previously present file .*greeting.proto/);
  });

  test("a rule that gets tighter and a default that changes are told, since neither buf nor the wire sees them", async () => {
    await writeGreeting(text);
    await release();
    expect([...(await tightenedRulesOf(root)), ...(await changedDefaultsOf(root))]).toEqual([]);
    await writeGreeting(text.replace("= 1", "= 1 [(buf.validate.field).string.max_len = 9]").replace("hello", "bye"));
    expect(await breakagesOf(root)).toEqual([]);
    expect(await tightenedRulesOf(root)).toEqual([
      "toolbus.greeting.v1.Greeting.text: string.max_len was not there, is now 9",
    ]);
    expect(await changedDefaultsOf(root)).toEqual([
      'toolbus.greeting.v1.Greeting.text: "empty means hello" was said of it, now "empty means bye"',
    ]);
    await expect(release()).rejects.toThrow(/max_len was not there[\s\S]*empty means bye[\s\S]*--breaking/);
  });

  test("without an image the comparisons fail instead of finding nothing", async () => {
    await writeGreeting(text);
    await expect(breakagesOf(root)).rejects.toThrow(/no contract has been released/);
    await expect(tightenedRulesOf(root)).rejects.toThrow(/no contract has been released/);
    await expect(changedDefaultsOf(root)).rejects.toThrow(/no contract has been released/);
  });

  test("the image in the tree holds its imports and comments, nothing internal, and catches the deletion of a field", async () => {
    const image = await releasedContract(projectRoot);
    expect(image.file.map((file) => file.name)).toContain("buf/validate/validate.proto");
    expect(image.file.filter((file) => file.name.startsWith("toolbus/internal/"))).toEqual([]);
    expect(ownFiles(image).flatMap((file) => (file.sourceCodeInfo ? [] : [file.name]))).toEqual([]);
    await workspace.write("released.binpb", imageFrom(image));
    const file = image.file.find((candidate) => candidate.name === "toolbus/tool/v1/tool.proto");
    expect(file?.messageType.find(({ name }) => name === "Tool")?.field.shift()?.name).toBe("name");
    await workspace.write("changed.binpb", imageFrom(image));
    const breakages = await breakagesBetween(projectRoot, join(root, "changed.binpb"), join(root, "released.binpb"));
    expect(breakages.join("\n")).toMatch(/with name "name" on message "Tool" was deleted/);
  });
});

describe("what is internal", () => {
  const delivery = protoFile("toolbus.internal.greeting.v1", messageOf("Delivery", text));

  test("is neither released nor compared, whether it is there, changes or goes", async () => {
    await writeGreeting(text);
    await workspace.write(internalPath, delivery);
    await release();
    expect(ownFiles(await releasedContract(root)).map(({ name }) => name)).toEqual([
      "toolbus/greeting/v1/greeting.proto",
    ]);
    await workspace.write(internalPath, delivery.replace("string text", "int32 number"));
    expect(await breakagesOf(root)).toEqual([]);
    await workspace.remove("proto/toolbus/internal");
    expect([
      ...(await breakagesOf(root)),
      ...(await tightenedRulesOf(root)),
      ...(await changedDefaultsOf(root)),
    ]).toEqual([]);
  });

  test("may import what is public, and a public file that imports it is told and not released", async () => {
    const imported = "toolbus/internal/greeting/v1/delivery.proto";
    await workspace.write(internalPath, delivery);
    const field = "  // How it came.\n  toolbus.internal.greeting.v1.Delivery delivery = 1;\n";
    await workspace.write(greetingPath, protoFile("toolbus.greeting.v1", messageOf("Greeting", field), [imported]));
    expect(await importsOfInternal(root)).toEqual([`${greetingPath} imports ${imported}`]);
    await expect(release()).rejects.toThrow(/publishes what is internal/);
    await writeGreeting(text);
    const ofPublic = delivery.replace("// A delivery", 'import "toolbus/greeting/v1/greeting.proto";\n\n// A delivery');
    await workspace.write(internalPath, ofPublic.replace("string text", "toolbus.greeting.v1.Greeting text"));
    expect(await importsOfInternal(root)).toEqual([]);
  });
});

describe("a release", () => {
  test("before the first version takes breakages on purpose, and has no version", async () => {
    await writeGreeting(text + tone);
    await release();
    await writeGreeting(text);
    await expect(release()).rejects.toThrow(/"tone"[\s\S]*--breaking/);
    await release({ isBreaking: true });
    expect(await breakagesOf(root)).toEqual([]);
    expect(await releasedVersion(root)).toBeUndefined();
    expect(await versionFaults(root)).toEqual([]);
  });

  test("with a version writes image, version and changelog together, and a check sees when they part", async () => {
    await writeGreeting(text);
    await release({ version: "1.0.0" });
    const changelog = await readFile(join(root, "proto/CHANGELOG.md"), "utf8");
    expect(changelog).toBe("# Changelog\n\n## [Unreleased]\n\n## [1.0.0] - 2030-01-02\n\n- A greeting.\n");
    expect(versionsIn(changelog)).toEqual(["1.0.0"]);
    expect(await releasedVersion(root)).toBe("1.0.0");
    expect(await versionFaults(root)).toEqual([]);
    await workspace.write("proto/CHANGELOG.md", changelog.replace("1.0.0", "1.1.0"));
    expect((await versionFaults(root)).join("\n")).toMatch(/tells of 1\.1\.0, .*of 1\.0\.0/);
    await workspace.write("proto/CHANGELOG.md", changelog);
    await workspace.write(releasedImage, "another");
    expect((await versionFaults(root)).join("\n")).toMatch(/is not the image that .* calls 1\.0\.0/);
  });

  describe("after 1.0.0", () => {
    const entry = async () => {
      const path = "proto/CHANGELOG.md";
      const changelog = await readFile(join(root, path), "utf8");
      await workspace.write(path, changelog.replace("[Unreleased]\n", "[Unreleased]\n\n- News.\n"));
    };

    beforeEach(async () => {
      await writeGreeting(text);
      await release({ version: "1.0.0" });
      await entry();
    });

    test("what is no next version is refused, and nothing is written", async () => {
      for (const [options, reason] of [
        [{}, /say the next version/],
        [{ version: "1.0.0" }, /1\.0\.0 is not above 1\.0\.0/],
        [{ version: "0.9.0" }, /0\.9\.0 is not above 1\.0\.0/],
        [{ version: "two" }, /"two" is no version such as 1\.0\.0/],
        [{ version: "1.1.0", isBreaking: true }, /needs a new major version/],
      ] as const) {
        await expect(release(options)).rejects.toThrow(reason);
        expect(await releasedVersion(root)).toBe("1.0.0");
        expect(await versionFaults(root)).toEqual([]);
      }
    });

    test("a version of which the changelog says nothing is refused", async () => {
      await workspace.write(
        "proto/CHANGELOG.md",
        "# Changelog\n\n## [Unreleased]\n\n## [1.0.0] - 2030-01-02\n\n- A.\n",
      );
      await expect(release({ version: "1.1.0" })).rejects.toThrow(/says nothing under \[Unreleased\]/);
      expect(await releasedVersion(root)).toBe("1.0.0");
    });

    test("what is added needs a minor version; words alone need none", async () => {
      await writeGreeting(text.replace("What is said", "What one says"));
      await release({ version: "1.0.1" });
      await entry();
      await writeGreeting(text + tone);
      await expect(release({ version: "1.0.2" })).rejects.toThrow(/"tone"[\s\S]*needs a minor version/);
      await release({ version: "1.1.0" });
      expect(await releasedVersion(root)).toBe("1.1.0");
    });

    test("a breakage is refused even on purpose, until its package has a new suffix and the old one is gone", async () => {
      const breaking = { version: "2.0.0", isBreaking: true };
      await writeGreeting(tone);
      await expect(release(breaking)).rejects.toThrow(/"text"[\s\S]*new version suffix \(v2\)/);
      await writeGreeting(text);
      await workspace.write("proto/toolbus/greeting/v2/greeting.proto", greeting(tone, 2));
      await release({ version: "1.1.0" });
      await entry();
      await workspace.remove("proto/toolbus/greeting/v1");
      expect(await breakagesOf(root)).not.toEqual([]);
      await expect(release({ version: "1.2.0" })).rejects.toThrow(/--breaking/);
      await release(breaking);
      expect(await breakagesOf(root)).toEqual([]);
      expect(await releasedVersion(root)).toBe("2.0.0");
    });

    test("a package that goes without a successor is refused", async () => {
      await workspace.remove("proto/toolbus/greeting");
      await workspace.write(
        "proto/toolbus/farewell/v2/farewell.proto",
        greeting(text, 2).replace("greeting", "farewell"),
      );
      await expect(release({ version: "2.0.0", isBreaking: true })).rejects.toThrow(/new version suffix/);
    });
  });
});
