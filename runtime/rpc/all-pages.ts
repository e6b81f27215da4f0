/**
 * The pages of a list from its first to its last, for who wants all of it:
 * `(await allPages((pageToken) => runs.listRuns({ pageToken }))).flatMap(({ runs }) => runs)`.
 */
export async function allPages<P extends { nextPageToken: string }>(
  readPage: (pageToken: string) => Promise<P>,
): Promise<P[]> {
  const pages: P[] = [];
  let pageToken = "";
  do {
    const page = await readPage(pageToken);
    pages.push(page);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return pages;
}
