import { create } from "@bufbuild/protobuf";
import type { Command } from "commander";
import type { SpaceEvent } from "#gen/toolbus/space/v1/space_pb.ts";
import {
  CreateSpaceResponseSchema,
  GetSpaceResponseSchema,
  ListMessagesResponseSchema,
  ListSpacesResponseSchema,
  SendMessageResponseSchema,
  SetSpaceGrantsResponseSchema,
  SpaceService,
  type WatchSpaceResponse,
  WatchSpaceResponseSchema,
} from "#gen/toolbus/space/v1/space_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { firstOf } from "#runtime/rpc/paging/first-of.ts";
import { globalOptionsOf, openConnection } from "../../connection.ts";
import { colors, oneLine, printLine, printMessage, printTable } from "../../printing/print.ts";
import { textOfMessage, textOfSpaceEvent } from "../../printing/space-printer.ts";
import { wholeNumber } from "../../requests/numbers.ts";
import { printLog } from "../../watching/log-watch.ts";

export function addSpacesCommand(program: Command): void {
  const spaces = program.command("spaces").description("List, create, show, speak in and watch spaces");
  spaces.command("list", { isDefault: true }).description("List all spaces").action(listSpaces);
  spaces
    .command("create")
    .description("Create a space; one that exists with that title stays as it is")
    .argument("<id>")
    .option("-t, --title <title>", "its title", "")
    .option("--grant <principals...>", "for whom it is; whoever may use what has no grants, unless told")
    .action(createSpace);
  spaces
    .command("grant")
    .description("Say for whom a space is; you always may use what you have created")
    .argument("<id>")
    .argument("[principals...]", "their names, `*` for all; none: nobody else")
    .option("--default", "for whoever may use what has no grants")
    .action(grantSpace);
  spaces
    .command("show")
    .description("Show who is in a space and what was said last")
    .argument("<id>")
    .option("-n, --limit <count>", "how many messages", wholeNumber(), 20)
    .option("--offset <count>", "how many of the latest to pass over", wholeNumber(), 0)
    .action(showSpace);
  spaces
    .command("send")
    .description("Say something in a space; agents in it find it in their inboxes")
    .argument("<id>")
    .argument("<text>")
    .option("--as <name>", "your name as others see it; your principal unless told", "")
    .action(sendMessage);
  spaces.command("watch").description("Follow a space").argument("<id>").action(watchSpace);
}

async function listSpaces(_options: object, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const service = openConnection(global).client(SpaceService);
  const pages = await allPages((pageToken) => service.listSpaces({ pageToken }));
  const spaces = pages.flatMap((page) => page.spaces);
  if (global.json) return printMessage(ListSpacesResponseSchema, create(ListSpacesResponseSchema, { spaces }));
  const rows = spaces.map(({ id, title, members }) => [id, members.map(({ name }) => name).join(", "), oneLine(title)]);
  printTable(["SPACE", "MEMBERS", "TITLE"], rows);
}

async function createSpace(
  spaceId: string,
  { title, grant }: { title: string; grant?: string[] },
  command: Command,
): Promise<void> {
  const global = globalOptionsOf(command);
  const grants = grant && { grants: { principals: grant } };
  const response = await openConnection(global)
    .client(SpaceService)
    .createSpace({ spaceId, title, ...grants });
  if (global.json) return printMessage(CreateSpaceResponseSchema, response);
  printLine(`${spaceId} is there`);
}

async function grantSpace(
  spaceId: string,
  principals: string[],
  options: { default?: boolean },
  command: Command,
): Promise<void> {
  const global = globalOptionsOf(command);
  const grants = options.default ? {} : { grants: { principals } };
  const response = await openConnection(global)
    .client(SpaceService)
    .setSpaceGrants({ spaceId, ...grants });
  if (global.json) return printMessage(SetSpaceGrantsResponseSchema, response);
  printLine(
    `${spaceId} is for ${options.default ? "whoever may use what has no grants" : ["you", ...principals].join(", ")}`,
  );
}

async function showSpace(
  spaceId: string,
  { limit, offset }: { limit: number; offset: number },
  command: Command,
): Promise<void> {
  const global = globalOptionsOf(command);
  const spaces = openConnection(global).client(SpaceService);
  const found = await spaces.getSpace({ spaceId });
  let totalSize = 0;
  const { items: messages, nextPageToken } = await firstOf(limit, async (request) => {
    const skip = request.pageToken === "" ? offset : 0;
    const page = await spaces.listMessages({ spaceId, skip, ...request });
    totalSize = page.totalSize;
    return { items: page.messages, nextPageToken: page.nextPageToken };
  });
  const page = create(ListMessagesResponseSchema, { messages, totalSize, nextPageToken });
  if (global.json) {
    printMessage(GetSpaceResponseSchema, found);
    return printMessage(ListMessagesResponseSchema, page);
  }
  const { title = "", members = [] } = found.space ?? {};
  const names = members.map(({ name }) => name).join(", ") || "nobody";
  printLine(`${colors.bold(spaceId)} ${oneLine(title)}`.trim());
  printLine(colors.dim(`${names} · ${page.messages.length} of ${page.totalSize} messages`));
  for (const message of page.messages.toReversed()) printLine(textOfMessage(message));
}

async function sendMessage(spaceId: string, text: string, options: { as: string }, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const spaces = openConnection(global).client(SpaceService);
  const response = await spaces.sendMessage({
    spaceId,
    content: textContent(text),
    author: { case: "personName", value: options.as },
  });
  if (global.json) printMessage(SendMessageResponseSchema, response);
  else if (response.message !== undefined) printLine(textOfMessage(response.message));
}

export async function watchSpace(spaceId: string, _options: object, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const spaces = openConnection(global).client(SpaceService);
  const open = (place: object) => spaces.watchSpace({ spaceId, ...place });
  const printJson = global.json && ((answer: WatchSpaceResponse) => printMessage(WatchSpaceResponseSchema, answer));
  await printLog({ from: 0n, open, print: (event: SpaceEvent) => printLine(textOfSpaceEvent(event)), printJson });
}
