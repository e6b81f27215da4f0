import { readEnvironment } from "#runtime/config/environment.ts";
import { runServersFromReader } from "#runtime/config/run-servers.ts";
import { serviceConfigFromReader } from "#runtime/config/service-config.ts";
import { maxResultBytesFromReader } from "#runtime/results/shortened.ts";

/** What each setting means is said where it is read. */
export type Config = Readonly<ReturnType<typeof readConfig>>;
export type ModelConfig = Readonly<Config["model"]>;

export function readConfig(env: NodeJS.ProcessEnv) {
  const reader = readEnvironment(env);
  const openaiApiKey = reader.optionalSecret("OPENAI_API_KEY", { meaning: "Key for `OPENAI_BASE_URL`." });
  if (openaiApiKey !== undefined && !/^[\x21-\x7e]+$/.test(openaiApiKey))
    reader.faultOfSecret("OPENAI_API_KEY", "one word of ASCII characters, as a header carries it");
  const entries = reader.list("TOOLBUS_MODEL_PROVIDERS", {
    meaning:
      "Packages or files that export a provider of models, like `house=./house.ts#house,openai=@ai-sdk/openai`. Packages of `@ai-sdk` need no entry.",
    form: "list of `name=module` or `name=module#export`",
    default: [],
  });
  const modules = entries.map((entry) => ({ entry, parsed: /^([a-zA-Z0-9_-]{1,64})=(\S+)$/.exec(entry) }));
  for (const { entry, parsed } of modules) {
    if (parsed === null)
      reader.fault("TOOLBUS_MODEL_PROVIDERS", entry, "name=package or name=./file, with an optional #export");
  }
  // Packages of models read their keys from variables of their own, which nobody can list: all are handed to this service.
  reader.inherited((name) => !/^(TOOLBUS_|NATS_)/.test(name));
  const config = {
    ...serviceConfigFromReader(reader),
    model: {
      openaiBaseUrl: reader.string("OPENAI_BASE_URL", {
        meaning: "Where the models of the provider `openai-compatible` are.",
        form: "URL",
        default: "https://api.openai.com/v1",
      }),
      scripts: reader.path("TOOLBUS_SCRIPTS", {
        meaning: "Directory of the files that the model provider `scripted` replays.",
        default: "scripts",
      }),
      modules: new Map(modules.flatMap(({ parsed }) => (parsed === null ? [] : [[parsed[1]!, parsed[2]!] as const]))),
      ...(openaiApiKey !== undefined && { openaiApiKey }),
    },
    runServers: runServersFromReader(reader),
    maxResultBytes: maxResultBytesFromReader(reader),
    slots: reader.integer("TOOLBUS_RUN_SLOTS", {
      meaning:
        "How many sessions one process works on at a time; one whose run waits for an agent, or for a tool that may call one, is none of them. The last eighth is for principals whose runs have less than an equal part.",
      default: 1_024,
      min: 1,
      max: 10_000,
    }),
    maxOpenRuns: reader.integer("TOOLBUS_SHARE_RUNS", {
      meaning:
        "Runs of one principal, accepted by one orchestrator, that have not ended: in progress, in a queue, or waiting for a client. More is refused, and says so.",
      default: 10_000,
      min: 1,
    }),
    takeoverMs: reader.milliseconds("TOOLBUS_TAKEOVER", {
      meaning: "When a process gives no sign of life for so long, another process takes over its runs.",
      default: 1_000,
      min: 200,
      max: 60_000,
    }),
    checkpointMs: reader.milliseconds("TOOLBUS_CHECKPOINT", {
      meaning: "How often the text is stored that the model has written so far in a turn.",
      default: 5_000,
      min: 100,
    }),
    retentionMs: reader.milliseconds("TOOLBUS_RUN_RETENTION", {
      meaning: "How long a session is kept after its last run has ended.",
      default: 30 * 24 * 3_600_000,
      min: 1,
    }),
    drainMs: reader.milliseconds("TOOLBUS_DRAIN", {
      meaning: "How long calls in flight may take while the service stops.",
      default: 5_000,
    }),
  };
  const { openaiBaseUrl } = config.model;
  const { protocol = "", username, password } = URL.parse(openaiBaseUrl) ?? {};
  if (!/^https?:$/.test(protocol) || /[?#]/.test(openaiBaseUrl) || username || password) {
    const expected = "a URL like https://api.openai.com/v1, with http or https and without a query or credentials";
    const shown = openaiBaseUrl.replace(/[?#].*/s, "?…").replace(/\/\/.*@/s, "//…@");
    reader.fault("OPENAI_BASE_URL", shown, expected); // paths are put behind it, and fetch refuses credentials with words that show them
  }
  reader.finish();
  return config;
}
