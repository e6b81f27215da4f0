import type { Random } from "../../random.ts";

const FUNCTION = "def f(): return 1\n";

const preludes = [
  "\ufeff",
  "#!/usr/bin/env python3\n",
  "# -*- coding: utf-8 -*-\n",
  '"""\n# /// script\n"""\n',
  'x = "# /// script"\n',
  "# see # /// script\n",
  "# /// scripts\n# a = 1\n# ///\n",
  "# /// other\n# a = 1\n# ///\n",
  "# /// other\n# dependencies = []\n",
  "\n\n",
  " ",
  "\f",
  "é = 1\n",
  "x = 1;\r",
];

const openings = [
  "#/// script",
  "#  /// script",
  "# /// script ",
  "# /// script\t",
  "# /// Script",
  "# /// scripts",
  "# ///  script",
  "# ///script",
  "## /// script",
  "# /// script # tools",
];

const good = [
  '# dependencies = ["alpha"]',
  '# dependencies = [\n#   "beta",\n#   "alpha>=1", # as it was\n# ]',
  '# requires-python = ">=3.9"',
  "# # a note",
  "#",
];

const odd = [
  '# dependencies = [\n#   "alpha",\n#   "beta>=1",\n# ]',
  '# dependencies = ["beta"] # "alpha"',
  '# dependencies = ["Alpha[extra]"]',
  '# dependencies = ["alpha" , "alpha==1.0"]',
  '# dependencies = ["alp\u2028ha"]',
  '# # a comment\u2028#dependencies = ["alpha"]',
  '# # a comment\u0085#dependencies = ["alpha"]',
  '# # a comment\u000b# dependencies = ["beta"]',
  '# dependencies = [ # \u2028xdependencies = ["alpha"\n# "beta"]',
  '# dependencies = ["a b c"]',
  '# dependencies = [""]',
  '# dependencies = ["alpha>"]',
  "# dependencies = [\"alpha; python_versio < '3'\"]",
  '# dependencies = "alpha"',
  "# dependencies = [3]",
  "# dependencies = [",
  "# dependencies = {}",
  "# [dependencies]",
  '# requires-python = ">=3.9"',
  '# requires-python = ">=3.99"',
  '# requires-python = "three"',
  '# requires-python = ""',
  "# requires-python = 3",
  '# requires_python = ">=3.9"',
  "# [tool.other]\n# x = 1",
  "# [tool.uv]\n# exclude-newer = 'never'",
  "# [tool.uv]\n# sources = 3",
  "# [tool.uv]\n# nonsense = 3",
  "# [tool.uv.sources]\n# alpha = { nowhere = 1 }",
  "# [tool]\n# uv = 3",
  "# tool = 3",
  "# version = 1.0",
  "# a = 1\n# a = 2",
  "# a = 2026-02-30",
  "# a = 1e400",
  "# a = 123456789012345678901234567890",
  '# a = "\\ud800"',
  '# a = "\\e"',
  "# a = {\n# b = 1,\n# }",
  '# a = """\n# ///\n# """',
  "# a.b = 1\n# [a]\n# c = 1",
  "#",
  "# ",
  "#\t",
  "# # /// script",
  "#dependencies = []",
  "#\tdependencies = []",
  "dependencies = []",
  "",
  "# //// ",
  "# # a\rcomment",
  "# # a\u0000comment",
];

const closings = ["", "#///", "# /// ", "# //", "# ////", " # ///", "# ///\n# ///", "# ///\n# # more\n# ///"];

const ODD = '#/ \t\r\n[]"=,script\u2028\u00e9\\';

/** A Python file with metadata as people, editors and accidents write them; most are near to what is right. */
export function textFromRandom(random: Random): string {
  const seldom = (share: number, from: readonly string[], usual: string) =>
    random.next() < share ? random.pick(from) : usual;
  const body = Array.from({ length: 1 + Math.floor(random.next() * 3) }, () =>
    random.pick(random.next() < 0.6 ? good : odd),
  );
  const block = () => [seldom(0.12, openings, "# /// script"), ...body, seldom(0.15, closings, "# ///"), ""].join("\n");
  const metadata = seldom(0.25, preludes, "") + block() + (random.next() < 0.06 ? `\n${block()}` : "");
  const mutated = random.next() < 0.3 ? withOddCharacter(metadata, random) : metadata;
  return (mutated + FUNCTION).replaceAll("\n", seldom(0.12, ["\r\n", "\r\n", "\r"], "\n"));
}

function withOddCharacter(text: string, random: Random): string {
  const at = Math.floor(random.next() * text.length);
  const kept = random.next() < 0.5 ? at : at + 1;
  return text.slice(0, at) + random.pick([...ODD, ""]) + text.slice(kept);
}
