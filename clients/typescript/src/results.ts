/** What calls return. Amounts are US dollars. */

export type Kind = "image" | "video" | "sound";
export type Status = "queued" | "in_progress" | "completed" | "failed";

/** An output. Its URL is signed and works for a while. */
export interface OutputFile {
  url: string;
  contentType: string | undefined;
  sizeBytes: number | undefined;
  revisedPrompt: string | undefined;
}

/** Images, a video or a sound, in whatever state. */
export interface Generation {
  id: string;
  kind: Kind;
  status: Status;
  model: string;
  /** Who made it, as provider/model. */
  executedModel: string | undefined;
  /** Percent. */
  progress: number;
  files: OutputFile[];
  /** Once it is completed. */
  cost: number | undefined;
  /** Before that, where it is known. */
  costEstimate: number | undefined;
  error: { code: string; message: string } | undefined;
  /** WIDTHxHEIGHT. */
  size: string | undefined;
  /** All that the gateway said. */
  body: Json;
}

/** What a call would cost at most. */
export interface Price {
  total: number;
  model: string;
  body: Json;
}

export interface Balance {
  /** Undefined for an organization that pays afterwards. */
  available: number | undefined;
  billingType: "prepaid" | "postpaid";
  body: Json;
}

export type Json = Record<string, any>;

const PATHS: Record<Kind, string> = {
  image: "/compat/v1/images",
  video: "/compat/v1/videos",
  sound: "/compat/v1/audio/generations",
};
const KINDS: Record<string, Kind> = { video: "video", audio: "sound", "audio.speech": "sound" };

/** Where the gateway has a generation. Throws for what is no id, which could be the path of anything. */
export function generationPath(id: string, kind: Kind): string {
  if (!/^[0-9A-Za-z_]+$/.test(id)) throw new TypeError(`the id of a generation is needed, not ${JSON.stringify(id)}`);
  return `${PATHS[kind]}/${id}`;
}

/** Read any response about a generation: images, the state of images, a video, a sound, or speech in JSON. */
export function readGeneration(body: Json): Generation {
  const metadata: Json = body.metadata ?? {};
  const outputs: Json[] = body.data ?? body.outputs ?? (body.output ? [body.output] : []);
  return {
    id: body.id,
    kind: KINDS[body.object] ?? "image",
    status: body.status ?? "completed", // images that were waited for are complete
    model: body.model ?? metadata.model ?? "",
    executedModel: metadata.executed_model,
    progress: body.progress || (outputs.length ? 100 : 0),
    files: outputs.filter((each) => each.url).map(readFile),
    cost: metadata.cost,
    costEstimate: metadata.cost_estimate,
    error: body.error ?? undefined,
    size: body.size,
    body,
  };
}

function readFile(output: Json): OutputFile {
  return {
    url: output.url,
    contentType: output.content_type,
    sizeBytes: output.size_bytes,
    revisedPrompt: output.revised_prompt,
  };
}
