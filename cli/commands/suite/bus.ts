import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { writeCredentials } from "#runtime/bus/credentials/directory.ts";
import { busUsers } from "../../../services/bus-users.ts";
import { printLine } from "../../printing/terminal.ts";
import { issueProviderKey } from "../../suite/keys/provider-key.ts";

interface Options {
  out: string;
  provider?: string;
}

export function addBusCommand(program: Command): void {
  const bus = program.command("bus").description("Make the keys of those who may sign in to NATS");
  bus
    .command("credentials")
    .description(
      "Make keys for all services, the list by which they trust each other, and the users file for nats-server; keys that exist stay",
    )
    .addOption(
      new Option("-o, --out <directory>", "where the keys are").env("TOOLBUS_BUS_CREDENTIALS").default(".toolbus/bus"),
    )
    .option(
      "--provider <name>",
      "make a key for a third party, which may serve the provider of that name and nothing else",
    )
    .action(credentials);
}

async function credentials({ out, provider }: Options): Promise<void> {
  if (provider !== undefined) return credentialsOfProvider(out, provider);
  const { path, usersFile } = await writeCredentials(out, busUsers);
  printLine(
    `The keys are in ${path}: give each service its own, <service>.nk, in the directory TOOLBUS_BUS_CREDENTIALS.`,
  );
  printLine("Give all services the list of the keys that they trust, trust.json, in the same directory.");
  printLine(`Include ${usersFile} in the authorization of every NATS node, and reload it: nats-server --signal reload`);
}

async function credentialsOfProvider(out: string, provider: string): Promise<void> {
  const { path, isKnown } = await issueProviderKey(out, provider);
  printLine(`The key of the third party is ${path}. It serves toolbus.rpc.${provider}.>, with the inbox prefix`);
  printLine(`_INBOX.provider.${provider}, and reaches nothing else.`);
  if (!isKnown)
    printLine(`Reload every NATS node that includes ${resolve(out)}/users.conf: nats-server --signal reload`);
}
