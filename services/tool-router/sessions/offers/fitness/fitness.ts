import { hash } from "node:crypto";
import type { OfferedTool } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { ExecutionType, type Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { openSlices } from "#runtime/rpc/handling/messages/slices.ts";
import { MAX_SCHEMA_CHARACTERS } from "#runtime/schema/json-schema/limits.ts";
import { faultOfToolSchema, type SchemaPlace } from "#runtime/schema/json-schema/tool-schema.ts";
import { referenceFrom } from "../../../tools/names.ts";

/*
 * No provider is trusted: what it offers is checked before it is used. A tool without a name is left out. A tool whose schema is
 * none is listed, and cannot be called. What stands in a schema may be odd: what of it cannot be checked is left to the provider. The provider's other tools stay usable.
 */

/** The usable part of an offer, with the faults of the rest. */
interface Fitness {
  /** At most `MAX_TOOLS`, each with a name. */
  readonly tools: readonly OfferedTool[];
  /** What keeps a tool of these from being called. */
  readonly faults: ReadonlyMap<OfferedTool, string>;
  /** What was left out, and what is faulty, in a few words; empty when all is well. */
  readonly summary: string;
}

export const MAX_TOOLS = 5_000;
const MAX_NAME_CHARACTERS = 256;
const MAX_DESCRIPTION_CHARACTERS = 65_536;
const MAX_TOLD = 3;

/** Judges what a provider says that it has, before anybody relies on it. Each provider that is named has slices of its own. */
export type JudgeOffer = (offered: readonly OfferedTool[], provider?: string) => Promise<Fitness>;

/** Each schema text is checked once, and the latest results are kept: sessions share their sources' tools. */
export function createOfferJudge(maxTexts = 20_000): JudgeOffer {
  const faultsByDigest = new BoundedMap<string, string | undefined>(maxTexts);

  async function faultOfText(text: string, place: SchemaPlace): Promise<string | undefined> {
    if (text === "") return undefined;
    const key = `${place} ${hash("sha256", text, "base64")}`; // the texts together may have gigabytes
    if (faultsByDigest.has(key)) return faultsByDigest.get(key);
    const fault = await faultOfToolSchema(text, place, () => undefined);
    faultsByDigest.set(key, fault);
    return fault;
  }

  async function faultOfTool(tool: Tool): Promise<string | undefined> {
    if (tool.description.length > MAX_DESCRIPTION_CHARACTERS)
      return `its description is longer than ${MAX_DESCRIPTION_CHARACTERS} characters`;
    const input = await faultOfText(tool.inputSchemaJson, "arguments");
    if (input !== undefined) return `its input schema ${input}`;
    const output = tool.outputSchemaJson;
    if (tool.executionType === ExecutionType.MCP && output.length > MAX_SCHEMA_CHARACTERS) return undefined; // MCP has no limit
    const fault = await faultOfText(output, "results");
    return fault && `its output schema ${fault}`;
  }

  return async (offered, provider) => {
    const tools = new Map<string, OfferedTool>();
    const faults = new Map<OfferedTool, string>();
    const remarks: string[] = [];
    const nextStep = openSlices(provider && `provider ${provider}`);
    for (const one of offered) {
      await nextStep();
      const name = one.tool?.name ?? "";
      const reference = referenceFrom(one.source, name);
      const flaw = flawOfName(name, one.source) ?? (tools.has(reference) ? "is offered twice" : undefined);
      if (flaw !== undefined) {
        remarks.push(`${JSON.stringify(name.slice(0, 64))} ${flaw}`);
        continue;
      }
      if (tools.size === MAX_TOOLS) {
        remarks.unshift(`it offers ${offered.length} tools, of which ${MAX_TOOLS} are taken`);
        break;
      }
      tools.set(reference, one);
      const fault = await faultOfTool(one.tool!);
      if (fault === undefined) continue;
      faults.set(one, fault);
      remarks.push(`${JSON.stringify(name)}: ${fault}`);
    }
    return { tools: [...tools.values()], faults, summary: summaryOf(remarks) };
  };
}

/** A name that reads like a pattern, or a bare one like that of a source's tool, would make references mean two things. */
function flawOfName(name: string, source: string): string | undefined {
  if (name === "") return "is no name";
  if (name.includes("*")) return "holds a *, which stands for any characters where tools are named";
  if (source === "" && name.startsWith("@")) return "begins with @, by which tools of sources are named";
  if (name.length > MAX_NAME_CHARACTERS) return `is longer than ${MAX_NAME_CHARACTERS} characters`;
  return /\p{Cc}|\p{Cs}/u.test(name) ? "holds characters that no name has" : undefined;
}

function summaryOf(remarks: readonly string[]): string {
  const rest = remarks.length > MAX_TOLD ? `; and ${remarks.length - MAX_TOLD} more` : "";
  return remarks.slice(0, MAX_TOLD).join("; ") + rest;
}
