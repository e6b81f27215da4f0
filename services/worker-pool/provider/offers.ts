import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  type GetProvidedToolsResponse,
  GetProvidedToolsResponseSchema,
  type OfferedToolSchema,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { Source } from "#gen/toolbus/tool/v1/source_pb.ts";
import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { Failure, refuse } from "#runtime/failure/failure.ts";
import { loadBuiltIns } from "../built-ins/built-ins.ts";
import type { ToolDirectory } from "../files/tool-directory.ts";
import { isModuleFileName, sourceFromFile } from "../files/tool-file.ts";
import type { HostedModules, ModuleFile } from "../hosted/hosted-modules.ts";
import type { Secrets } from "./secrets.ts";
import { parseSourceConfig } from "./source-config.ts";

type OfferedToolInit = MessageInitShape<typeof OfferedToolSchema>;

interface OffersParts {
  directory: ToolDirectory;
  hosted: HostedModules;
  secrets: Secrets;
}

/**
 * What the pool offers: of the sources that are asked for, or, without any, of each file under its own name, and what the
 * built-ins are like, which the catalogue's entries give their policies.
 */
export function createOffers({
  directory,
  hosted,
  ...parts
}: OffersParts): (sources: readonly Source[]) => Promise<GetProvidedToolsResponse> {
  /** Throws a Failure that says why the source cannot be used. */
  function toolsOf(source: Source): OfferedToolInit[] {
    const { files, secrets } = parseSourceConfig(source.name, source.config);
    const missing = `there is no file ${files[0]} in the directory of workers or hosted modules`;
    const found =
      files.map((file) => directory.find(file) ?? hosted.find(file)).find((file) => file !== undefined) ??
      refuse("not_found", missing, { reason: "WORKER_NOT_FOUND" });
    const refusal = refusalOf(found);
    const fault = refusal ? `${found.file} is refused: ${refusal}` : parts.secrets.faultOf(source.name, secrets);
    if (fault) refuse("failed_precondition", fault, { reason: "WORKER_INVALID" });
    return toolsFromFile(source.name, found);
  }

  function offerOf(source: Source) {
    try {
      return { tools: toolsOf(source), status: { source: source.name, available: true, reason: "" } };
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      return { tools: [], status: { source: source.name, available: false, reason: error.message } };
    }
  }

  async function ownOffers() {
    const { builtInTools } = await loadBuiltIns();
    const python = directory.files().map(ownOffer);
    const taken = new Set(python.map(({ status }) => status.source));
    const modules = hosted.files().map(ownOffer);
    const described = { tools: builtInTools.map((tool) => ({ source: "", tool })), status: undefined };
    return [...python, ...modules.filter(({ status }) => !taken.has(status.source)), described];
  }

  return async (sources) => {
    const offers = sources.length > 0 ? sources.map(offerOf) : await ownOffers();
    return create(GetProvidedToolsResponseSchema, {
      tools: offers.flatMap((offer): OfferedToolInit[] => offer.tools),
      sources: offers.flatMap(({ status }) => status ?? []),
    });
  };
}

function ownOffer(file: ModuleFile) {
  const source = sourceFromFile(file.file);
  const reason = refusalOf(file);
  return { tools: reason ? [] : toolsFromFile(source, file), status: { source, available: reason === "", reason } };
}

function refusalOf(file: ModuleFile): string {
  if (file.kind === "loading") return "it is being loaded";
  return file.kind === "refused" ? file.reason : "";
}

function toolsFromFile(source: string, file: ModuleFile): OfferedToolInit[] {
  if (file.kind !== "offered") return [];
  const executionType = isModuleFileName(file.file) ? ExecutionType.HOSTED : ExecutionType.WORKER;
  return file.functions.map(({ effect, timeoutMs, ...told }) => ({
    source,
    tool: {
      ...told,
      executionType,
      effect: effect === undefined ? Effect.UNSPECIFIED : EFFECTS[effect],
      ...(timeoutMs !== undefined && { timeout: durationFromMs(timeoutMs) }),
    },
  }));
}

const EFFECTS = { pure: Effect.PURE, idempotent: Effect.IDEMPOTENT, at_most_once: Effect.AT_MOST_ONCE } as const;
