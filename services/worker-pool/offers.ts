import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type ListToolsResponse,
  ListToolsResponseSchema,
  type OfferedToolSchema,
  type Source,
} from "#gen/toolbus/tool/v1/provider_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { builtinTools } from "./builtins/builtins.ts";
import { type OfferedFile, sourceFromFile, type ToolFile } from "./files/tool-file.ts";
import type { Secrets } from "./secrets.ts";
import { parseSourceConfig } from "./source-config.ts";

type OfferedToolInit = MessageInitShape<typeof OfferedToolSchema>;

/**
 * What the pool offers: of the sources that are asked for, or, without any, of each file under its own name, and what the
 * built-ins are like, which the catalogue's entries give their policies.
 */
export function createOffers(parts: {
  files: () => readonly ToolFile[];
  find: (file: string) => ToolFile | undefined;
  secrets: Secrets;
}): (sources: readonly Source[]) => ListToolsResponse {
  /** Throws a Failure that says why the source cannot be used. */
  function fileOf(source: Source): OfferedFile {
    const { file, secrets } = parseSourceConfig(source.name, source.config);
    const found = parts.find(file);
    if (!found) throw new Failure("not_found", `there is no file ${file} in the directory of workers`);
    if (found.kind === "refused") throw new Failure("failed_precondition", `${file} is refused: ${found.reason}`);
    const fault = parts.secrets.faultOf(source.name, secrets);
    if (fault) throw new Failure("failed_precondition", fault);
    return found;
  }

  function offerOf(source: Source) {
    try {
      const tools = toolsFromFile(source.name, fileOf(source));
      return { tools, status: { source: source.name, available: true, reason: "" } };
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      return { tools: [], status: { source: source.name, available: false, reason: error.message } };
    }
  }

  function ownOffer(file: ToolFile) {
    const source = sourceFromFile(file.file);
    if (file.kind === "refused") return { tools: [], status: { source, available: false, reason: file.reason } };
    return { tools: toolsFromFile(source, file), status: { source, available: true, reason: "" } };
  }

  return (sources) => {
    const offers = sources.length > 0 ? sources.map(offerOf) : parts.files().map(ownOffer);
    const builtins = sources.length > 0 ? [] : builtinTools.map((tool) => ({ source: "", tool }));
    const tools = [...offers.flatMap((offer) => offer.tools), ...builtins];
    return create(ListToolsResponseSchema, { tools, sources: offers.map(({ status }) => status) });
  };
}

function toolsFromFile(source: string, file: OfferedFile): OfferedToolInit[] {
  return file.functions.map(({ name, description, inputSchemaJson }) => ({
    source,
    tool: { name, description, inputSchemaJson, executionType: ExecutionType.WORKER },
  }));
}
