import { type ListName, placeFromToken, tokenFromPlace } from "./page-token.ts";

/** What every list is asked for; a page size of 0 means 100. */
export interface PageRequest {
  pageSize: number;
  pageToken: string;
}

export interface Page<T> {
  items: T[];
  nextPageToken: string;
}

const DEFAULT_PAGE_SIZE = 100;

export function sizeOfPage(pageSize: number): number {
  return pageSize || DEFAULT_PAGE_SIZE;
}

/**
 * A page of a list that is at hand, in the order of its places, each of which is the place of one element alone. What comes or
 * goes between two pages moves nothing else.
 */
export function pageOf<T>(
  list: ListName,
  { elements, placeOf }: { elements: Iterable<T>; placeOf: (element: T) => string },
  { pageSize, pageToken }: PageRequest,
): Page<T> {
  const after = placeFromToken(list, pageToken);
  const behind = Array.from(elements, (element) => ({ element, place: placeOf(element) }))
    .filter(({ place }) => place > after)
    .sort((one, other) => (one.place < other.place ? -1 : 1));
  const size = sizeOfPage(pageSize);
  const place = behind.length > size ? behind[size - 1]!.place : "";
  return { items: behind.slice(0, size).map(({ element }) => element), nextPageToken: tokenFromPlace(list, place) };
}
