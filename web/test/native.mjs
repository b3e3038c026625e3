// Shared by the tests: the bundled model, and the output of the native program.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
export const model = `${root}models/oriel-tiny/oriel-tiny-q8_0.gguf`;
const program = process.env.ORIEL_NATIVE || `${root}build/release/apps/oriel`;
export const noModule = existsSync(new URL('../dist/oriel.wasm', import.meta.url)) ? false : 'web/dist is not built: scripts/web.sh builds it';
export const noNative = existsSync(program) ? false : `${program} is not built`;
/** Oriel in Node has two libraries. ORIEL_ADDON: an addon outside the package. */
const addon = process.env.ORIEL_ADDON || `${root}web/prebuilds/${process.platform}-${process.arch}/oriel.node`;
export const noAddon = existsSync(addon) ? false : `${addon} is not built`;
export const engines = [{ engine: 'wasm', skip: noModule }, { engine: addon, skip: noAddon }];
/** Small random models of many families; not part of the package. */
export const familyFolder = process.env.ORIEL_REFERENCE_DATA ? `${process.env.ORIEL_REFERENCE_DATA}/models` : `${root}../shared/golden/models`;
export const noFamilies = existsSync(familyFolder) ? false : `${familyFolder} is not there`;
export const layout = { window: 300, kv: 'k8v4', prefillBatch: 24 };

export function native(args, input) {
  const out = execFileSync(program, [...args, '--device', 'cpu', '--json'], { input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'ignore'] });
  return JSON.parse(out);
}
