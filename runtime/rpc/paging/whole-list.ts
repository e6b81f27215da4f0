import { allPages } from "./all-pages.ts";

interface ListOfTools {
  readonly tools: unknown[];
  readonly toolsRevision: string;
  readonly nextPageToken: string;
}

/** All tools of one list: it is read again when it changed between two of its pages. */
export async function wholeList<P extends ListOfTools>(readPage: (pageToken: string) => Promise<P>): Promise<P> {
  for (;;) {
    const [first, ...others] = await allPages(readPage);
    const isOne = others.every(({ toolsRevision }) => toolsRevision === first.toolsRevision);
    if (isOne) return { ...first, tools: [first, ...others].flatMap(({ tools }) => tools), nextPageToken: "" };
  }
}
