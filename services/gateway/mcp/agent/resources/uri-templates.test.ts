import { UriTemplate } from "@modelcontextprotocol/server";
import { expect, it } from "vitest";
import { computedMs } from "#runtime/time/testing/machine-time.ts";
import { fitsTemplate, MAX_STEPS } from "./uri-templates.ts";

const templates = [
  "files://all",
  "files://{name}",
  "files://{dir}/{name}.{ending}",
  "files:///{+path}",
  "files:///{+path}.md",
  "repo://{owner}/{repo}/contents{/path*}",
  "weather://{city}-{day}",
  "list://{items*}",
  "find://all{?word,limit}",
  "find://all?fixed=1{&word}",
  "name{.ending}",
  "doc{#part}",
  "a+(b)[c]{d}",
];
const uris = [
  ...["files://all", "files://all/more", "files://", "files://a,b", "files://src/main.ts", "files://src/main"],
  ...[
    "files:///a/b/c.md",
    "files:///.md",
    "repo://me/it/contents/src",
    "repo://me/it/contents",
    "repo://me/it/contents/a/b",
  ],
  ...[
    "weather://new-york-monday",
    "weather://-",
    "weather://a-b/c",
    "list://a,b,c",
    "list://a",
    "find://all?word=x&limit=2",
  ],
  ...[
    "find://all?word=x",
    "find://all?limit=2&word=x",
    "find://all?fixed=1&word=y",
    "name.txt",
    "name.",
    "doc#x",
    "a+(b)[c]!",
    "",
  ],
];

it("DOOR-1 an address fits a template as the SDK has it", () => {
  for (const template of templates)
    for (const uri of uris)
      expect([template, uri, fitsTemplate(template, uri)]).toEqual([
        template,
        uri,
        new UriTemplate(template).match(uri) !== null,
      ]);
});

it("SEC-5 whether an address fits a template is known at once, whatever a server and a client make of them", async () => {
  const judge = () => {
    expect(fitsTemplate("weather://{city}-{day}", `weather://${"-".repeat(500_000)}/`)).toBe(false);
    expect(fitsTemplate("weather://{city}-{day}", `weather://${"-".repeat(8_000)}/`)).toBe(false);
    expect(fitsTemplate(`x://${"{a}".repeat(20)}!`, `x://${"y".repeat(200)}`)).toBe(false);
    expect(fitsTemplate(`x://${"{a}".repeat(100_000)}`, `x://${"y".repeat(200)}`)).toBe(false);
    expect(fitsTemplate("{".repeat(100_000), "x")).toBe(false);
    expect(fitsTemplate(`x://{?${"a,".repeat(100_000)}b}`, `x://?a=${"y".repeat(8_000)}`)).toBe(false);
    const [costly, budget] = [`x://${"{a}".repeat(32)}!`, { steps: MAX_STEPS }];
    for (let count = 0; count < 10_000; count += 1)
      expect(fitsTemplate(costly, `x://${"y".repeat(8_000)}`, budget)).toBe(false);
  };
  expect(await computedMs(judge)).toBeLessThan(1_500);
});
