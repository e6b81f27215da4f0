import { readServiceConfig } from "#runtime/config/service-config.ts";
import { type Setting, settingsOf } from "#runtime/config/settings.ts";
import { commandSettings } from "../../cli/project/command-settings.ts";
import { configReaderOf, listServices } from "../../cli/suite/service-names.ts";

export const referencePath = "docs/settings.md";

/** The settings of one service, without those of every service. */
interface ServiceSettings {
  readonly service: string;
  readonly settings: readonly Setting[];
}

const head = `# Settings

What each service can be told by its environment. \`npm run reference\` writes this page from the services' \`config.ts\`.

- An empty variable counts as one that is not set.
- A **time** is a number of milliseconds, or has a unit: \`250ms\`, \`30s\`, \`10m\`, \`2h\`.
- A **list** has commas between its items; a comma in an item is written \`\\,\`.
- A relative **path** begins at the working directory.
- \`toolbus up\` and \`toolbus serve\` name each variable \`TOOLBUS_…\` that nothing reads: it may be misspelled.
- A service with faulty settings reports all faults at once and does not start.
`;

const foot = `\`toolbus up\` hands each service the variables that it reads. It sets \`TOOLBUS_INSTANCE\`, \`TOOLBUS_HTTP_PORT\` (from \`--port\`) and,
when it starts NATS, \`NATS_URL\` itself. \`TOOLBUS_BUS_CREDENTIALS\` is \`bus\` in its directory unless it is set. It ignores \`TOOLBUS_HEALTH_PORT\`: the gateway's \`/livez\` and \`/healthz\` tell of the suite. Agents, tools, workers, hosted modules, scripts and components are
those of the [project](projects.md), unless the variables above name other directories.
`;

/** The settings that all services have in common. */
function commonSettings(): Setting[] {
  return settingsOf(readServiceConfig);
}

/** What each service reads beyond the common settings. */
async function settingsByService(): Promise<ServiceSettings[]> {
  const common = new Set(commonSettings().map(({ name }) => name));
  return Promise.all(
    listServices().map(async (service) => {
      const settings = settingsOf(await configReaderOf(service)).filter(({ name }) => !common.has(name));
      return { service, settings: settings.sort((a, b) => (a.name < b.name ? -1 : 1)) };
    }),
  );
}

/** The whole page. */
export async function settingsReference(): Promise<string> {
  const services = await settingsByService();
  const parts = services.map(({ service, settings }) => {
    const readers = (name: string) => readersOf(name, services).filter((one) => one !== service);
    return sectionOf(service, settings, readers);
  });
  return [
    head,
    sectionOf("Every service", commonSettings(), () => []),
    ...parts,
    sectionOf("The command", commandSettings, () => []),
    foot,
  ].join("\n");
}

function readersOf(name: string, services: readonly ServiceSettings[]): string[] {
  return services.flatMap(({ service, settings }) => (settings.some((one) => one.name === name) ? [service] : []));
}

function sectionOf(title: string, settings: readonly Setting[], alsoReadBy: (name: string) => string[]): string {
  if (settings.length === 0) return `## ${title}\n\nOnly the settings of every service.\n`;
  const rows = settings.map((setting) => {
    const others = alsoReadBy(setting.name);
    const alike = others.length === 0 || setting.name.includes("<") ? "" : ` Set it alike for: ${others.join(", ")}.`;
    return `| \`${setting.name}\` | ${setting.meaning}${alike} | ${setting.form} | ${defaultOf(setting)} |`;
  });
  return [`## ${title}`, "", "| variable | meaning | value | default |", "|---|---|---|---|", ...rows, ""].join("\n");
}

function defaultOf({ fallback, whenUnset }: Setting): string {
  if (whenUnset !== undefined) return whenUnset;
  return fallback ? `\`${fallback}\`` : "";
}
