export type Bytes = ArrayBuffer | SharedArrayBuffer | ArrayBufferView;
/** A path (Node), a URL, bytes, or a Blob (a File that somebody picked). */
export type Source = string | URL | Bytes | Blob;
/** Bytes: 262144, '300MB' (10^6) or '300MiB' (2^20). */
export type Size = number | string;
export type CacheFormat = 'auto' | 'f16' | 'k8v8' | 'k8v4' | 'k4v4';

export interface PlanOptions {
  /** Hard cap for the model and its sessions. Default: 1 GiB, less where the browser says that the device has little. */
  memory?: Size;
  /**
   * Tokens that are seen besides the sinks; 'max': the whole trained context, where it fits. Default: as many as fit,
   * up to 8192 and the trained context.
   */
  window?: number | 'max';
  minWindow?: number;
  /** First tokens that are never forgotten. Default: 4. */
  sinks?: number;
  pinned?: number;
  chunk?: number;
  kv?: CacheFormat;
  /** Replies can be held to a schema, a grammar or tools. Takes memory (`Plan.constraintBytes`). */
  constraints?: boolean;
  /** Conversations at a time. Default: 1. */
  sessions?: number;
  prefixTokens?: number;
  systemPrompt?: string;
  /** Room for the text of a session's messages. */
  transcript?: Size;
}

export interface Progress {
  what: 'fetch' | 'load';
  done: number;
  /** 0: not known. */
  total: number;
}

export interface LoadOptions extends PlanOptions {
  /** Default: one for each processor, at most 8. 1 where memory cannot be shared. */
  threads?: number;
  /** What it throws ends the load; what `log` throws is dropped. */
  progress?: (progress: Progress) => void;
  log?: (text: string, level: number) => void;
  logLevel?: 'warning' | 'info' | 'debug';
  /** In browsers: the folder of oriel.wasm and oriel-threads.wasm, ending in a slash. Default: dist/ of the package. */
  assets?: string | URL;
  /** The script of the worker. Default: dist/worker.js of the package, src/engine/node.js in Node. */
  worker?: string | URL;
}

export interface LayerGroup {
  kind: 'session' | 'sliding' | 'convolution' | 'state';
  layers: number;
  windowTokens: number;
  ringTokens: number;
  bytesPerToken: number;
  bytes: number;
}

export interface PlanChoice {
  kv: Exclude<CacheFormat, 'auto'>;
  kFormat: string;
  vFormat: string;
  fits: boolean;
  windowTokens: number;
  chunkTokens: number;
  /** 0: it is not; 1: it would lose too much. */
  refused: number;
  totalBytes: number;
  minimumBytes: number;
  lossNats: number;
}

export interface Plan {
  fits: boolean;
  memoryBytes: number;
  totalBytes: number;
  weightsBytes: number;
  kvBytes: number;
  activationBytes: number;
  stagingBytes: number;
  hostBytes: number;
  /** The least memory that these options can run in. */
  minimumBytes: number;
  kvBytesPerToken: number;
  windowTokens: number;
  sinkTokens: number;
  ringTokens: number;
  chunkTokens: number;
  contextTrainTokens: number;
  kv: Exclude<CacheFormat, 'auto'>;
  kFormat: string;
  vFormat: string;
  lossNats: number;
  choices: PlanChoice[];
  groups: LayerGroup[];
  onFileBytes: number;
  stateBytes: number;
  checkpoints: number;
  constraintBytes: number;
  sessions: number;
  sessionBytes: number;
  transcriptBytes: number;
}

export interface ModelInfo {
  architecture: string;
  name: string;
  tokenizer: string;
  chatTemplate: string;
  tensorTypes: string;
  device: string;
  driver: string;
  nLayers: number;
  nHeads: number;
  nKvHeads: number;
  headDim: number;
  nEmbd: number;
  nFf: number;
  nVocab: number;
  contextTrain: number;
  parameters: number;
  fileBytes: number;
  bosId: number;
  eosId: number;
  addBos: number;
}

export interface Message {
  role: string;
  content?: string | null | object[];
  tool_calls?: object[];
  tool_call_id?: string;
  name?: string;
  reasoning_content?: string;
}

export interface ChatOptions {
  /** The name of a chat format, or a Jinja template. */
  template?: string;
  thinking?: boolean;
  date?: Date | number;
  tools?: object[] | string;
  documents?: object[] | string;
  variables?: object | string;
}

export interface SessionOptions extends ChatOptions {
  system?: string;
  splitTurns?: boolean;
  forgetEvicted?: boolean;
}

export interface GenerateOptions {
  signal?: AbortSignal;
  maxTokens?: number;
  minTokens?: number;
  greedy?: boolean;
  seed?: number;
  temperature?: number;
  /** 0: all. */
  topK?: number;
  topP?: number;
  /** 0: off. */
  minP?: number;
  repeatPenalty?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  repeatWindow?: number;
  ignoreStop?: boolean;
  stop?: string | string[];
  logprobs?: boolean;
  topLogprobs?: number;
  /** A JSON schema; the model is loaded with `constraints`. */
  schema?: object | string;
  /** GBNF. */
  grammar?: string;
  trigger?: string;
  toolChoice?: 'free' | 'checked' | 'required' | 'none';
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
  logprobs: { id: number; logprob: number; top: { id: number; logprob: number }[] }[];
  stopReason: 'length' | 'token' | 'callback' | 'cancelled' | 'text';
  tokens: number;
  promptTokens: number;
  timeToFirstTokenMs: number;
  decodeTokensPerS: number;
}

export type ReplyEvent =
  | { type: 'text' | 'thought'; text: string }
  | { type: 'call' | 'arguments' | 'callEnd'; text: string; call: number }
  | { type: 'reading'; done: number; total: number };

/** Either of the two iterations takes the events; leaving one ends the reply. */
export interface Reply extends AsyncIterable<string> {
  readonly result: Promise<ReplyResult>;
  events(): AsyncGenerator<ReplyEvent, void, void>;
  /**
   * Ends the reply behind the token that it is at; what there is stays in the session. One that has not read its message
   * yet fails as cancelled, and the message is not said. Nothing happens to a reply that is over.
   */
  cancel(): void;
}

export interface Stats {
  position: number;
  windowUsed: number;
  windowCapacity: number;
  evicted: number;
  deviceBytes: number;
  hostBytes: number;
  submissions: number;
  tokensReadAgain: number;
  /** All memory of the module: the plan's, and what code, stacks and calls take. */
  wasmBytes: number;
}

/** Tokens by their number: what is where in the cache. */
export interface View {
  position: number;
  firstVisible: number;
  firstStored: number;
  sinksUsed: number;
  turnCount: number;
  turns: number[];
}

export interface Restored {
  how: 'exactly' | 'carried' | 'read';
  rounded: boolean;
  tokensHeld: number;
  tokensDropped: number;
  tokensRead: number;
}

export interface Session {
  readonly system?: string;
  add(messages: string | Message | Message[]): Promise<void>;
  /** A reply that fails before its first token leaves no message behind, where the session can still go back. */
  reply(message: string | Message | Message[], options?: GenerateOptions): Reply;
  generate(options?: GenerateOptions): Reply;
  append(input: string | Iterable<number>, options?: { special?: boolean; bos?: boolean }): Promise<void>;
  score(ids: Iterable<number>): Promise<{ tokens: number; nll: number[]; nllMean: number }>;
  embed(text: string, options?: { normalise?: boolean }): Promise<Float32Array>;
  stats(): Promise<Stats>;
  view(): Promise<View>;
  /** Ids from a position on: a whole number up to 2^53. */
  tokens(first?: number): Promise<number[]>;
  save(): Promise<Uint8Array>;
  restore(bytes: Bytes, options?: { exact?: boolean; read?: boolean }): Promise<Restored>;
  transcript(): Promise<Message[]>;
  /** To a position, a whole number up to 2^53, or to where the `turns`-th turn before the end began. */
  rewind(to: number | { turns: number }): Promise<void>;
  /** Back to the beginning, with the system message. */
  reset(): Promise<void>;
  /** Cancels the session's replies. */
  dispose(): Promise<void>;
}

export interface Model {
  readonly plan: Plan;
  readonly info: ModelInfo;
  readonly threads: number;
  readonly version: string;
  session(options?: SessionOptions): Session;
  tokenize(text: string, options?: { special?: boolean; bos?: boolean }): Promise<number[]>;
  detokenize(ids: Iterable<number>, options?: { special?: boolean }): Promise<string>;
  render(messages: Message[], options?: ChatOptions & { generationPrompt?: boolean }): Promise<string>;
  inspectSnapshot(bytes: Bytes): Promise<Record<string, string | number>>;
  dispose(): Promise<void>;
}

export interface Planner {
  plan(options?: PlanOptions): Promise<Plan>;
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
  /** Of a load that does not fit. */
  readonly plan?: Plan;
}
