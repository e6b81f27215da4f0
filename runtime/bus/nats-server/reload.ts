import { resolve } from "node:path";
import { isOurServer } from "./left-over.ts";
import { filesOfServer, readRunRecord } from "./server-files.ts";

/** Lets the server that runs in this directory read its users anew; false where none does. Who is signed in stays so. */
export async function reloadNatsServer(directory: string): Promise<boolean> {
  const files = filesOfServer(resolve(directory));
  const record = await readRunRecord(files);
  if (record === undefined || !isOurServer(record.server, files)) return false;
  process.kill(record.server.pid, "SIGHUP");
  return true;
}
