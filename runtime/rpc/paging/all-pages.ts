/**
 * The pages of a list from its first to its last, for who wants all of it:
 * `(await allPages((pageToken) => runs.listRuns({ pageToken }))).flatMap(({ runs }) => runs)`.
 */
export async function allPages<P extends { nextPageToken: string }>(
  readPage: (pageToken: string) => Promise<P>,
): Promise<[first: P, ...others: P[]]> {
  const pages: [P, ...P[]] = [await readPage("")];
  for (let last = pages[0]; last.nextPageToken !== ""; pages.push(last)) last = await readPage(last.nextPageToken);
  return pages;
}
