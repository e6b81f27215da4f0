// BUS-1: every list of the contract is read in pages, in the same way.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type DescField, type DescMethod, ScalarType } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { internalServices, publicServices } from "../../../services/processes.ts";
import { projectRoot } from "../../architecture/source-files.ts";

const methods = [...publicServices, ...internalServices, ToolProviderService].flatMap((service) => service.methods);
const lists = methods.filter(({ name }) => name.startsWith("List"));
const protos = readdirSync(join(projectRoot, "proto"), { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".proto"))
  .map((path) => readFileSync(join(projectRoot, "proto", path), "utf8"))
  .join("\n");

const titled = (list: DescMethod) => [`${list.parent.typeName}/${list.name}`, list] as const;

/** Order as comments say it: "by name", "latest first". */
const order = /, (by [a-z]+(?: [a-z]+)?(?:, [a-z]+)*(?: and [a-z]+)?|latest first)[.:]/;

describe.each(lists.map(titled))("%s", (_, { name, input, output }) => {
  it("BUS-1 is asked for with page_size and page_token, and answers next_page_token", () => {
    expect(scalarOf(input.field.pageSize)).toEqual(["page_size", ScalarType.INT32]);
    expect(scalarOf(input.field.pageToken)).toEqual(["page_token", ScalarType.STRING]);
    expect(scalarOf(output.field.nextPageToken)).toEqual(["next_page_token", ScalarType.STRING]);
    const listed = output.fields.filter((field) => field.fieldKind === "list" && field.listKind === "message");
    expect(listed[0]?.number).toBe(1);
  });

  it("BUS-1 takes a page_size from 0 to 1000, and says that 0 means 100", () => {
    const request = new RegExp(`message ${input.name} \\{([^]*?)\\n\\}`).exec(protos)?.[1] ?? "";
    expect(request).toContain(
      "// Maximum number to return; 0 means 100. A page may hold fewer while more follow.\n  int32 page_size",
    );
    expect(request).toMatch(
      /int32 page_size = \d+ \[\(buf\.validate\.field\)\.int32 = \{\s*gte: 0\s*lte: 1000\s*\}\];/,
    );
  });

  it("BUS-1 says its order", () => {
    const comment = new RegExp(`((?:  // .*\\n)+)  rpc ${name}\\(`).exec(protos)?.[1] ?? "";
    expect(comment.replace(/\n\s*\/\/ /g, " ")).toMatch(order);
  });
});

it("BUS-1 these are all methods that answer pages, and more than a dozen", () => {
  const paged = methods.filter(({ output }) => output.field.nextPageToken !== undefined);
  expect(paged).toEqual(lists);
  expect(lists.length).toBeGreaterThan(12);
});

function scalarOf(field: DescField | undefined) {
  return [field?.name, field?.fieldKind === "scalar" ? field.scalar : undefined];
}
