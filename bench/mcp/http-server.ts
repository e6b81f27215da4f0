/** An echo over streamable HTTP, in a process of its own. */
import { openModernServer } from "../../services/mcp-bridge/testing/servers/modern-server.ts";

const { url } = await openModernServer();
process.on("disconnect", () => process.exit());
process.send?.({ kind: "ready", url });
