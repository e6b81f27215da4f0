interface Known<K, V> {
  get(key: K): V | undefined;
  set(key: K, value: V): unknown;
}

/** As ECMAScript's method of that name, which this release of Node lacks: what stands for the key, computed if nothing does. */
export function getOrInsertComputed<K, V>(map: Known<K, V>, key: K, compute: (key: K) => V): V {
  const standing = map.get(key);
  if (standing !== undefined) return standing;
  const computed = compute(key);
  map.set(key, computed);
  return computed;
}
