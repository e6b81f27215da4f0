import { durationFromMs, timestampDate } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { globalOptionsOf, openConnection } from "../../connection.ts";
import { colors, printJson, printLine, printNote } from "../../printing/print.ts";
import { timeSpan } from "../../requests/past-time.ts";

export function addAnswerLinkCommand(answers: Command): void {
  answers
    .command("link")
    .description("Let somebody else answer one call in the console: prints its address, and a key for it alone")
    .argument("<call>", "the call's id, as `toolbus answers` shows it")
    .option("--expires <span>", "how long the key holds, like 30m or 1d; an hour unless told, a week at most", timeSpan)
    .action(makeLink);
}

/** The key stands beside the address and never in it: addresses are kept in histories and logs. */
async function makeLink(callId: string, { expires }: { expires?: number }, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const connection = openConnection(global);
  const request = { callId, ...(expires !== undefined && { lifetime: durationFromMs(expires) }) };
  const { key, keyId, expireTime } = await connection.client(ToolCallService).createCallKey(request);
  const link = `${connection.url.replace(/\/$/, "")}/#/inbox/${callId}`;
  const until = expireTime ? timestampDate(expireTime).toISOString() : "";
  if (global.json) return printJson({ link, key, keyId, expireTime: until });
  printLine(`${colors.dim("link")}  ${link}`);
  printLine(`${colors.dim("key")}   ${key}`);
  printNote(
    `until ${until} it answers this call in your name, and does nothing else; send it another way than the link`,
  );
}
