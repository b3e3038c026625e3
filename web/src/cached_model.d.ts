import type { Progress } from './index.js';

export interface CacheOptions {
  /** Of the file, in hexadecimal. A file with another is refused and removed. */
  sha256?: string;
  progress?: (progress: Progress) => void;
  /** Ends the download; what there is of it is kept. */
  signal?: AbortSignal;
}

/** Browsers: the model as a Blob for Oriel.load, downloaded if it is not kept yet. Call again after an error to resume. */
export function cachedModel(url: string | URL, options?: CacheOptions): Promise<Blob>;
/** Removes a model, or what there is of it. */
export function forgetModel(url: string | URL): Promise<void>;
