/** An echo over streamable HTTP, in a process of its own. */
import { openModernServer } from "../../services/mcp-bridge/testing/servers/modern-server.ts";
import { sayReady } from "../measuring/peer-process.ts";

const { url } = await openModernServer();
sayReady({ url });
