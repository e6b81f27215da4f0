/** Pages for logins at MCP servers, which need no script. */
export interface Page {
  readonly status: number;
  readonly html: string;
}

export function loginPage(server: string, needsKey: boolean): Page {
  const key = `<label>Your key <input type="password" name="key" autocomplete="current-password" required></label>`;
  const form = `<form method="post"><input type="hidden" name="server" value="${escaped(server)}">
${needsKey ? key : ""}<button>Go on</button></form>`;
  return page(
    `Log in to ${server}`,
    `<p>toolbus uses the MCP server ${escaped(server)} for you after this.</p>${form}`,
  );
}

/** With a link to go on, if there is one. */
export function resultPage(title: string, text: string, link?: string): Page {
  const onward = link === undefined ? "" : `<p><a href="${escaped(link)}">Go on</a></p>`;
  return page(title, `<p>${escaped(text)}</p>${onward}`);
}

function page(title: string, body: string): Page {
  const style = "body{font:1rem system-ui;max-width:32rem;margin:4rem auto;padding:0 1rem}";
  const head = `<meta charset="utf-8"><title>${escaped(title)}</title><style>${style}</style>`;
  return {
    status: 200,
    html: `<!doctype html><html lang="en"><head>${head}</head><body><h1>${escaped(title)}</h1>${body}</body></html>\n`,
  };
}

function escaped(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? "");
}
