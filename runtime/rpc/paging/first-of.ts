import type { PageRequest } from "./page.ts";

interface Part<T> {
  readonly items: T[];
  /** Where the list goes on; empty at its end. */
  readonly nextPageToken: string;
}

/** The first so many elements of a list, by as many pages as it takes: each may hold fewer than it is asked for. */
export async function firstOf<T>(
  count: number,
  readPage: (request: PageRequest) => Promise<Part<T>>,
): Promise<Part<T>> {
  const items: T[] = [];
  let pageToken = "";
  do {
    const page = await readPage({ pageSize: Math.min(1_000, count - items.length), pageToken });
    items.push(...page.items);
    pageToken = page.nextPageToken;
  } while (items.length < count && pageToken !== "");
  return { items, nextPageToken: pageToken };
}
