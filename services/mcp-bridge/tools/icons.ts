import { create } from "@bufbuild/protobuf";
import { type Icon, IconSchema } from "#gen/toolbus/tool/v1/source_pb.ts";
import { isObject } from "#runtime/schema/json-object.ts";

const MAX_ICONS = 16;
const MAX_SIZES = 32;

/** The icons that a page may show: no other scheme than `https:` and `data:` is safe to load. Others are left out. */
export function iconsFrom(listed: unknown): Icon[] {
  const all = Array.isArray(listed) ? listed.slice(0, MAX_ICONS) : [];
  return all.flatMap((icon) => {
    if (!isObject(icon) || typeof icon.src !== "string" || !/^(https:|data:)/i.test(icon.src)) return [];
    const { src, mimeType, sizes, theme } = icon;
    if (src.length > 65_536) return [];
    const text = (value: unknown, maxLength: number) =>
      typeof value === "string" && value.length <= maxLength ? value : "";
    const shown = Array.isArray(sizes) ? sizes.slice(0, MAX_SIZES).map((size) => text(size, 32)) : [];
    const told = {
      src,
      mimeType: text(mimeType, 256),
      sizes: shown.filter((size) => size !== ""),
      theme: text(theme, 16),
    };
    return [create(IconSchema, told)];
  });
}
