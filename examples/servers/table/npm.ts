import { CHROMIUM, NOTE, type PublicServer } from "../public-server.ts";

const REFERENCE = "MCP project, TypeScript SDK 1";

const npx = (...args: string[]) => ["npx", "-y", ...args];

/** Servers that npx fetches from the registry of npm. */
export const NPM: readonly PublicServer[] = [
  {
    name: "everything",
    make: REFERENCE,
    command: () => npx("@modelcontextprotocol/server-everything@2026.8.18"),
    short: () => ["mcp-server-everything"],
    call: { tool: "echo", arguments: () => ({ message: NOTE }), expect: NOTE },
  },
  {
    name: "filesystem",
    make: REFERENCE,
    command: ({ directory }) => npx("@modelcontextprotocol/server-filesystem@2026.7.10", directory),
    short: ({ directory }) => ["mcp-server-filesystem", directory],
    call: {
      tool: "read_text_file",
      arguments: ({ directory }) => ({ path: `${directory}/note.txt` }),
      expect: NOTE,
    },
  },
  {
    name: "memory",
    make: REFERENCE,
    command: () => npx("@modelcontextprotocol/server-memory@2026.8.31"),
    env: ({ directory }) => ({ MEMORY_FILE_PATH: `${directory}/memory.jsonl` }),
    call: {
      tool: "create_entities",
      arguments: () => ({ entities: [{ name: "toolbus", entityType: "bus", observations: [NOTE] }] }),
      expect: NOTE,
    },
  },
  {
    name: "sequential-thinking",
    make: REFERENCE,
    command: () => npx("@modelcontextprotocol/server-sequential-thinking@2026.8.31"),
    call: {
      tool: "sequentialthinking",
      arguments: () => ({ thought: NOTE, nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }),
      expect: "thoughtHistoryLength",
    },
  },
  {
    name: "eslint",
    make: "ESLint, TypeScript SDK 1",
    command: () => npx("@eslint/mcp@0.3.13"),
    call: {
      tool: "lint-files",
      arguments: ({ directory }) => ({ filePaths: [`${directory}/note.js`] }),
      expect: "no-debugger",
    },
  },
  {
    name: "desktop-commander",
    make: "community, TypeScript SDK 1",
    command: () => npx("@wonderwhy-er/desktop-commander@0.2.52"),
    env: ({ directory }) => ({ HOME: directory }),
    call: { tool: "read_file", arguments: ({ directory }) => ({ path: `${directory}/note.txt` }), expect: NOTE },
  },
  {
    name: "playwright",
    make: "Microsoft, TypeScript SDK 1",
    command: ({ directory }) => [
      ...npx("@playwright/mcp@0.0.83", "--headless", "--isolated", "--no-sandbox"),
      ...["--executable-path", CHROMIUM, "--output-dir", directory],
    ],
    call: { tool: "browser_navigate", arguments: ({ page }) => ({ url: page }), expect: NOTE },
    needs: "browser",
  },
  {
    name: "chrome-devtools",
    make: "Google, TypeScript SDK 1",
    command: () => [
      ...npx("chrome-devtools-mcp@1.11.0", "--headless", "--isolated", "--executablePath", CHROMIUM),
      ...["--chromeArg=--no-sandbox", "--no-usage-statistics"],
    ],
    call: { tool: "new_page", arguments: ({ page }) => ({ url: page }), expect: "127.0.0.1" },
    needs: "browser",
  },
  {
    name: "context7",
    make: "Upstash, TypeScript SDK 2",
    command: () => npx("@upstash/context7-mcp@4.1.1"),
    call: {
      tool: "resolve-library-id",
      arguments: () => ({ query: "connect rpc", libraryName: "connectrpc" }),
      expect: "connect",
    },
    needs: "network",
  },
  {
    name: "svelte",
    make: "Svelte, tmcp",
    command: () => npx("@sveltejs/mcp@0.1.26"),
    call: {
      tool: "svelte-autofixer",
      arguments: () => ({ code: "<p>{answer}</p>", desired_svelte_version: 5, filename: "Answer.svelte" }),
      expect: "issues",
    },
    needs: "network",
    isNeededToStart: true,
  },
  {
    name: "firecrawl",
    make: "Firecrawl, FastMCP (TypeScript)",
    command: () => npx("firecrawl-mcp@3.26.0"),
    env: () => ({ FIRECRAWL_API_KEY: process.env.FIRECRAWL_API_KEY ?? "none" }),
    call: { tool: "firecrawl_search", arguments: () => ({ query: "MCP", limit: 1 }), expect: "MCP" },
    needs: "key FIRECRAWL_API_KEY",
  },
  {
    name: "azure",
    make: "Microsoft, C# SDK",
    command: () => npx("@azure/mcp@2.0.5", "server", "start"),
    call: {
      tool: "get_azure_bestpractices",
      arguments: () => ({ intent: NOTE, learn: true }),
      expect: "get_azure_bestpractices_get",
    },
  },
  {
    name: "notion",
    make: "Notion, TypeScript SDK 1",
    command: () => npx("@notionhq/notion-mcp-server@2.5.2"),
    env: () => ({ NOTION_TOKEN: process.env.NOTION_TOKEN ?? "none" }),
    call: { tool: "API-get-self", arguments: () => ({}), expect: "user" },
    needs: "key NOTION_TOKEN",
  },
];
