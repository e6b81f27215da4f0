import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isLicenseText, licenseOf } from "./licenses.ts";

const odd = [
  ...["LICENSE-APACHE-2.0", "LICENSE.BSD", "MIT-LICENSE.txt", "License.markdown", "licence-mit.md", "COPYING.LESSER"],
  ...["UNLICENSE", "ThirdPartyNotices.txt", "NOTICE.html", "COPYRIGHT"],
];

test("SEC-8 the package has the license texts of what it bundles, whatever their files are called", async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolbus-test-licenses-"));
  try {
    await writeFile(join(folder, "package.json"), JSON.stringify({ name: "odd", version: "1.2.3", license: "MIT" }));
    for (const name of odd) await writeFile(join(folder, name), `the terms of ${name}\n`);
    await mkdir(join(folder, "LICENSES"));
    await writeFile(join(folder, "LICENSES", "MIT.txt"), "the terms of the folder\n");
    await writeFile(join(folder, "license.js"), "no terms\n");
    const text = await licenseOf(folder);
    expect(text).toContain("odd 1.2.3, MIT\n");
    for (const name of odd) expect(text).toContain(`the terms of ${name}\n`);
    expect(text).toContain("the terms of the folder\n");
    expect(text).not.toContain("no terms");
  } finally {
    await rm(folder, { recursive: true });
  }
});

test.each(["license.d.ts", "licenses.json", "index.js", "README.md", "license-checker.mjs", "LICENSE.yml"])(
  "SEC-8 %s is no license text",
  (name) => expect(isLicenseText(name)).toBe(false),
);
