import { CopyButton } from "../../parts/text-block.tsx";

/** How the same is asked elsewhere. The key is named, never written. */
export function Copies({ runId }: { runId: string }) {
  const url = location.origin;
  const cli = `toolbus --url ${url} runs show ${runId}`;
  const body = JSON.stringify({ runId });
  const curl = `curl -H "authorization: Bearer $TOOLBUS_API_KEY" -H "content-type: application/json" -d '${body}' ${url}/toolbus.run.v1.RunService/GetRun`;
  const program = `import { createToolbus } from "toolbus";\n\nconst run = createToolbus({ url: ${JSON.stringify(url)} }).takeUp(${JSON.stringify(runId)});\nfor await (const { text } of run.text()) process.stdout.write(text);\n`;
  return (
    <span class="copies">
      <CopyButton label="copy as CLI" text={cli} />
      <CopyButton label="copy as curl" text={curl} />
      <CopyButton label="copy as TypeScript" text={program} />
    </span>
  );
}
