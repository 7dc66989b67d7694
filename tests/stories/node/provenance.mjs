// Says of each file what c2pa-ts, which shares no code with the gateway, finds: whether it is valid, and what is wrong.
import { readFile } from "node:fs/promises";
import { BMFF, JPEG, PNG } from "@trustnxt/c2pa-ts/asset";
import { SuperBox } from "@trustnxt/c2pa-ts/jumbf";
import { ManifestStore, ValidationResult } from "@trustnxt/c2pa-ts/manifest";

async function verify(data) {
  const Format = [JPEG, PNG, BMFF].find((each) => each.canRead(data));
  const asset = new Format(data);
  const jumbf = asset.getManifestJUMBF();
  if (!jumbf) return { manifests: 0 };
  try {
    const store = ManifestStore.read(SuperBox.fromBuffer(jumbf));
    const result = await store.validate(asset);
    const problems = result.statusEntries.filter((entry) => !entry.success).map((entry) => entry.code);
    return { manifests: store.manifests.length, valid: result.isValid, problems };
  } catch (error) {
    return { valid: ValidationResult.fromError(error).isValid, problems: [String(error)] };
  }
}

const found = {};
for (const file of process.argv.slice(2)) found[file] = await verify(await readFile(file));
console.log(JSON.stringify(found));
