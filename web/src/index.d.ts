// Classes and results. The options of the library are in dist/options.d.ts, which make.mjs writes.
import type * as Library from '../dist/options.js';

export type Bytes = ArrayBuffer | SharedArrayBuffer | ArrayBufferView;
/** A path (Node), a URL, bytes, or a Blob (a File that the user picked). */
export type Source = string | URL | Bytes | Blob;
export type PlanOptions = Omit<Library.LoadOptions, 'mmproj'> & {
  /** The encoder of pictures: the GGUF file of the model's publisher. */
  mmproj?: Source;
};
/** Pixels: 4 bytes (RGBA) or 3 (RGB) each, top row first. In browsers anything that createImageBitmap takes, too. */
export type Picture = { data: ArrayBufferView; width: number; height: number } | Blob | object;
export type ChatOptions = Library.SessionOptions;

export interface Progress {
  what: 'fetch' | 'load';
  done: number;
  /** 0: not known. */
  total: number;
}

export interface LoadOptions extends PlanOptions {
  /** An error that it throws ends the load. Errors that `log` throws are dropped. */
  progress?: (progress: Progress) => void;
  log?: (text: string, level: number) => void;
  logLevel?: 'warning' | 'info' | 'debug';
  /** In browsers: the folder of oriel.wasm and oriel-threads.wasm, ending in a slash. Default: dist/ of the package. */
  assets?: string | URL;
  /** The script of the worker. Default: dist/worker.js of the package, src/engine/node.js in Node. */
  worker?: string | URL;
  /** In Node: the native addon if it was built for this system ('auto'), either library, or an addon's path (*.node). */
  engine?: 'auto' | 'native' | 'wasm' | (string & {});
}

/** The plan of docs/reference/describe.md, with names in camelCase. */
export interface Plan {
  fits: boolean;
  memoryBytes: number;
  totalBytes: number;
  weightsBytes: number;
  kvBytes: number;
  activationBytes: number;
  stagingBytes: number;
  hostBytes: number;
  /** The smallest `memory` for these options. */
  minimumBytes: number;
  windowTokens: number;
  sinkTokens: number;
  contextTrainTokens: number;
  kFormat: 'f16' | 'int8' | 'int4';
  vFormat: 'f16' | 'int8' | 'int4';
  lossNats: number;
  [field: string]: any;
}

/** The model of docs/reference/describe.md, with names in camelCase. */
export interface ModelDescription {
  architecture: string;
  name: string;
  nEmbd: number;
  nVocab: number;
  parameters: number;
  plan: Plan;
  /** Options in force. */
  options: Record<string, string>;
  [field: string]: any;
}

/** The session of docs/reference/describe.md, with names in camelCase. */
export interface SessionDescription {
  position: number;
  turns: number[];
  marks: { name: string; position: number }[];
  /** Options in force. */
  options: Record<string, string>;
  [field: string]: any;
}

export interface Message {
  role: string;
  content?: string | null | object[];
  /** They come before the content. Needs the load option mmproj. */
  pictures?: Picture[];
  tool_calls?: object[];
  tool_call_id?: string;
  name?: string;
  reasoning_content?: string;
}

export interface SessionOptions extends ChatOptions {
  /** A system message at the beginning, also after a reset. */
  system?: string;
}

export interface GenerateOptions extends Library.ReplyOptions {
  signal?: AbortSignal;
}

export interface ToolCall {
  name: string;
  /** A text where the call was cut off. */
  arguments: Record<string, unknown> | string;
  incomplete?: true;
}

export interface ReplyResult {
  text: string;
  thought: string;
  toolCalls: ToolCall[];
  tokenIds: number[];
  /** With the option topLogprobs. */
  logprobs: { id: number; logprob: number; top: { id: number; logprob: number }[] }[];
  stopReason: 'length' | 'token' | 'callback' | 'cancelled' | 'text';
  tokens: number;
  promptTokens: number;
  /** Tokens of the prompt that did not fit the window. */
  promptTokensEvicted: number;
  tokensDrafted: number;
  tokensAccepted: number;
  timeToFirstTokenMs: number;
  decodeTokensPerS: number;
}

export type ReplyEvent =
  | { type: 'text' | 'thought'; text: string }
  | { type: 'call' | 'arguments' | 'callEnd'; text: string; call: number }
  /** With the option valueParts: a piece of a string, a whole number, true, false or null, the end of a value. */
  | { type: 'string' | 'literal' | 'valueEnd'; text: string; path: string }
  | { type: 'reading'; done: number; total: number };

/** Either of the two iterations takes the events; leaving one ends the reply. */
export interface Reply extends AsyncIterable<string> {
  readonly result: Promise<ReplyResult>;
  events(): AsyncGenerator<ReplyEvent, void, void>;
  /**
   * Ends the reply after its current token; the session keeps the text so far. If the message has
   * not been read yet, the reply fails as cancelled and the message is not added. A finished reply
   * does not change.
   */
  cancel(): void;
}

export interface Stats {
  position: number;
  evicted: number;
  firstVisible: number;
  firstStored: number;
  sinksUsed: number;
  windowUsed: number;
  windowCapacity: number;
  turnCount: number;
  deviceBytes: number;
  hostBytes: number;
  /** All memory of the WebAssembly module: the plan, code, stacks and borrowed memory. */
  wasmBytes?: number;
}

export interface Restored {
  how: 'exactly' | 'carried' | 'read';
  rounded: boolean;
  tokensHeld: number;
  tokensDropped: number;
  tokensRead: number;
}

export interface Recovered {
  tokensDropped: number;
  /** Bit for bit the lost state. */
  exact: boolean;
}

export interface Session {
  readonly system?: string;
  add(messages: string | Message | Message[]): Promise<void>;
  /** A reply that fails before its first token removes its message again, if the session can still go back. */
  reply(message: string | Message | Message[], options?: GenerateOptions): Reply;
  generate(options?: GenerateOptions): Reply;
  append(input: string | Iterable<number>, options?: { special?: boolean; bos?: boolean }): Promise<void>;
  score(ids: Iterable<number>): Promise<{ tokens: number; nll: number[]; nllMean: number }>;
  /** The session must be empty. `raw`: not scaled to length 1. `kind`: an encoder gets the search words of its model's page. */
  embed(text: string, options?: { pooling?: 'auto' | 'mean' | 'last' | 'first'; kind?: 'text' | 'query' | 'document'; raw?: boolean }): Promise<Float32Array>;
  stats(): Promise<Stats>;
  describe(): Promise<SessionDescription>;
  /** Ids from a position on: a whole number up to 2^53. */
  tokens(first?: number): Promise<number[]>;
  save(): Promise<Uint8Array>;
  restore(bytes: Bytes, options?: { exact?: boolean; read?: boolean }): Promise<Restored>;
  transcript(): Promise<Message[]>;
  /**
   * Removes the tokens after a position, the last `turns`, or the tokens after a mark. `readAgain`: reads the transcript
   * again if memory lacks the target.
   */
  goBack(to: number | { turns: number } | { mark: string }, options?: { readAgain?: boolean }): Promise<void>;
  /** Names the current position for goBack. */
  mark(name: string): Promise<void>;
  /**
   * The LoRA adapters from here on, as the session option `adapters`: "style,sql:0.5". Left out: all as loaded. Tokens that
   * were read with others are read again.
   */
  useAdapters(adapters?: string): Promise<void>;
  /** A second session that continues from here. Takes a free session of the model. */
  fork(): Session;
  /** After a lost device: builds it again, reads weights and conversation again. Native only. */
  recover(options?: { device?: string }): Promise<Recovered>;
  /** Back to the beginning, with the system message. */
  reset(): Promise<void>;
  /** Cancels the session's replies. */
  dispose(): Promise<void>;
}

export interface Model {
  readonly plan: Plan;
  readonly threads: number;
  readonly version: string;
  readonly engine: 'native' | 'wasm';
  session(options?: SessionOptions): Session;
  tokenize(text: string, options?: { special?: boolean; bos?: boolean }): Promise<number[]>;
  detokenize(ids: Iterable<number>, options?: { special?: boolean }): Promise<string>;
  render(messages: Message[], options?: ChatOptions & { generationPrompt?: boolean }): Promise<string>;
  describe(): Promise<ModelDescription>;
  describeSnapshot(bytes: Bytes): Promise<Record<string, any>>;
  /** Makes the session's content the beginning of all later sessions. null: removes it. Needs the option prefixTokens. */
  setPrefix(session: Session | null): Promise<void>;
  /** Gives memory back until resume(). 'cache' writes the caches into `folder`. Native only, as pause and resume. */
  trim(level: 'scratch' | 'weights' | 'cache' | 'all', options?: { folder?: string }): Promise<void>;
  /** Stops replies between two tokens until resume(). Memory stays. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  dispose(): Promise<void>;
}

export interface Planner {
  /** `options` are added to the options of Oriel.planner. */
  plan(options?: PlanOptions): Promise<Plan>;
  /** The contents of the file, and `missing`: the reasons if it cannot run. */
  describe(): Promise<Record<string, any>>;
  dispose(): void;
}

export class Oriel {
  static load(source: Source, options?: LoadOptions): Promise<Model>;
  static plan(source: Source, options?: LoadOptions): Promise<Plan>;
  static planner(source: Source, options?: LoadOptions): Promise<Planner>;
}

export const statusNames: readonly string[];
export class OrielError extends Error {
  readonly code: number;
  readonly status: string;
  /** For a load that does not fit. */
  readonly plan?: Plan;
}
