import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { readServiceConfig } from "#runtime/config/service-config.ts";
import { type Setting, settingsOf } from "#runtime/config/settings.ts";
import { listServices } from "../../cli/suite/service-names.ts";
import { commandSettings } from "./command-settings.ts";

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
async function settingsByService(root: string): Promise<ServiceSettings[]> {
  const common = new Set(commonSettings().map(({ name }) => name));
  return Promise.all(
    listServices().map(async (service) => {
      const url = pathToFileURL(join(root, "services", service, "config.ts")).href;
      const { readConfig } = (await import(url)) as { readConfig: (env: NodeJS.ProcessEnv) => unknown };
      const settings = settingsOf(readConfig).filter(({ name }) => !common.has(name));
      return { service, settings: settings.sort((a, b) => (a.name < b.name ? -1 : 1)) };
    }),
  );
}

/** The whole page. */
export async function settingsReference(root: string): Promise<string> {
  const services = await settingsByService(root);
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
