"""What the OpenAPI document says about each operation: its group, and how to use it."""

from collections.abc import Mapping

from penstock.api.openapi.account_operations import ACCOUNT_OPERATIONS, Operation
from penstock.api.openapi.trial_schemas import TRIAL_OPERATIONS

# The groups, in the order in which a reader meets them.
TAGS: Mapping[str, str] = {
    "Images": "Generate, edit and upscale images.",
    "Videos": "Start videos, follow them, download and cancel them.",
    "Chat": "Chat completions and responses, whole or as a stream.",
    "Sound": "Speak texts, make effects and music.",
    "Batches": "Many calls at once: checked and priced together, run in the background, paid once each.",
    "Trials": "The same prompts with several models, compared with figures.",
    "Models": "What can be called, with parameters and prices.",
    "Requests": "The record of every call: status, cost, attempts, outputs.",
    "Library": "The outputs that are still stored: find, keep, mark and share them.",
    "Usage": "Sums over time, the most frequent failures, the balance.",
    "Labels": "Names and values by which costs are grouped, and budgets for them.",
    "Destinations": "Buckets of the own organization, into which outputs are copied.",
    "Guards": "What checks calls and outputs, and what it said.",
    "Keys": "API keys of the own organization, and their limits.",
    "Audit log": "Who changed what, in a chain of hashes.",
    "Webhooks": "Messages to receivers, their deliveries, and the secret that signs them.",
    "Recordings": "Stored calls that are replayed in tests.",
    "Installation": "For operators: organizations, credit, alerts, providers, settings, metrics.",
    "Files": "Downloads by signed URL, and calls that only providers make.",
    "Pages": "The dashboard, the documentation and this document.",
    "Health": "For load balancers and monitoring.",
}


_DRY_RUN = "With `dryRun=true` nothing is made, and the response is an estimate of the cost."
_REPLAY = "The `X-Service-Replay` headers record the call, replay a recording or mock the result."

# By the name of the endpoint's function, which is the id of the operation.
OPERATIONS: Mapping[str, Operation] = {
    "make_images": Operation(
        "Images",
        "Makes up to ten images from a prompt and waits for them. With `Prefer: respond-async` the response is a 202 "
        f"with an id to retrieve them by, and `webhook_url` is told when they are done. {_DRY_RUN} {_REPLAY}",
    ),
    "edit_images": Operation(
        "Images",
        "Edits or upscales one or more images. As a form the images are files; as JSON they are HTTPS URLs or data "
        f"URIs. The image is edited where `mask` is fully transparent. {_DRY_RUN} {_REPLAY}",
    ),
    "image_status": Operation(
        "Images", "Returns the images of an earlier call with fresh URLs, or how far an asynchronous call is."
    ),
    "start_video": Operation(
        "Videos",
        "Accepts a video and responds at once; poll it, or give a `webhook_url`. A repeated call with the same "
        "`idempotency_key` returns the first video. A video that fails is free, unless its price is for the time of a "
        f"machine. {_DRY_RUN} {_REPLAY}",
    ),
    "edit_video": Operation(
        "Videos",
        "Starts a video that is made by a prompt from another: a file in a form, an HTTPS URL or a data URI, or "
        f"`{{id}}` of a completed video, whose model is then the default. {_DRY_RUN} {_REPLAY}",
    ),
    "extend_video": Operation(
        "Videos",
        f"Starts a video that goes on where another ends; `video` is as for edits. {_DRY_RUN} {_REPLAY}",
    ),
    "remix_video": Operation(
        "Videos",
        "Starts an edit of the completed video in the path, by default with the model that made it. "
        f"{_DRY_RUN} {_REPLAY}",
    ),
    "start_openrouter_video": Operation(
        "Videos",
        "Starts a video as OpenRouter's API does, for its clients: set their server to `/compat/openrouter/v1`. "
        f"{_DRY_RUN} {_REPLAY}",
    ),
    "openrouter_video": Operation(
        "Videos", "Returns the status of any video of the organization; a completed one has `urls` and its cost."
    ),
    "download_openrouter_video": Operation("Videos", "As `/compat/v1/videos/{id}/content`."),
    "list_openrouter_video_models": Operation("Videos", "Lists the models that make videos, with what they take."),
    "list_videos": Operation("Videos", "Lists the videos of the organization, newest first unless `order` is `asc`."),
    "video": Operation(
        "Videos", "Returns the status of a video; when it is `completed`, `output` has a URL that works for a while."
    ),
    "download_video": Operation(
        "Videos", "Returns the file of a completed video, a frame of it or a sheet of frames. Ranges are supported."
    ),
    "cancel_video": Operation(
        "Videos",
        "Cancels a video that is not finished; it is free then. A finished video is not deleted: purge its payloads "
        "for that. OpenAI's clients get an object instead of an empty response.",
    ),
    "complete_chat": Operation(
        "Chat",
        "Sends messages to a chat model and returns its response, or server-sent events with `stream`. The highest "
        "possible cost is held meanwhile; fields that the model does not take are refused by name.",
    ),
    "create_response": Operation(
        "Chat",
        "OpenAI's Responses API on top of every chat model. Nothing is stored, so `input` has the whole conversation.",
    ),
    "create_speech": Operation(
        "Sound",
        "Speaks a text. The body of the response is the sound itself, while the provider makes it; with "
        "`stream_format` `sse` it comes in server-sent events. A caller that accepts only JSON gets the URL of a "
        f"sound that is kept; with `Prefer: respond-async` the response is a 202 and a sound to poll. {_DRY_RUN}",
    ),
    "transcribe": Operation(
        "Sound",
        "Returns what is said in a sound, as JSON, text or subtitles, or as server-sent events with `stream`. The "
        "gateway measures the sound, and reads every format of the list on every model. With `Prefer: respond-async` "
        f"the response is a 202 and a transcript to poll. {_DRY_RUN}",
    ),
    "translate": Operation(
        "Sound",
        "Returns what is said in a sound, in English, by models that translate. Most fields are as there.",
    ),
    "list_transcripts": Operation(
        "Sound", "Lists the kept transcripts of the organization, newest first unless `order` is `asc`."
    ),
    "transcript": Operation(
        "Sound",
        "Returns the status of a kept transcript; when it is `completed`, `output` has a URL that works for a while.",
    ),
    "download_transcript": Operation("Sound", "Returns a completed transcript in the form that the call asked for."),
    "cancel_transcript": Operation(
        "Sound", "Cancels a transcript that is not finished; it is free then. OpenAI's clients get an object."
    ),
    "list_voices": Operation(
        "Sound",
        "Lists the voices of the models that the key may use, each with the names of OpenAI's that it speaks for, and "
        "those that the accounts behind the key have besides. `model` takes the voices of one model.",
    ),
    "play_voice": Operation(
        "Sound",
        "Plays the sound by which a voice of an account can be heard, free of charge. Voices whose `preview_url` is "
        "null have none.",
    ),
    "list_speech_models": Operation("Sound", "Lists the models that speak, in the form that Open WebUI reads."),
    "start_sound": Operation(
        "Sound",
        "Accepts an effect or a piece of music and responds at once; poll it, give a `webhook_url`, or wait for up to "
        "a minute with `Prefer: wait=60`. A repeated call with the same `idempotency_key` returns the first sound. A "
        f"sound that fails is free. {_DRY_RUN} {_REPLAY}",
    ),
    "list_sounds": Operation(
        "Sound", "Lists the kept sounds of the organization, newest first unless `order` is `asc`."
    ),
    "sound": Operation(
        "Sound",
        "Returns the status of a kept sound; when it is `completed`, `output` has a URL that works for a while.",
    ),
    "download_sound": Operation("Sound", "Returns the file of a completed sound. Ranges are supported."),
    "cancel_sound": Operation(
        "Sound",
        "Cancels a sound that is not finished; it is free then. A finished sound is not deleted: purge its payloads "
        "for that. OpenAI's clients get an object instead of an empty response.",
    ),
    "create_batch": Operation(
        "Batches",
        "Creates a batch from JSONL or CSV. Every row is checked and priced before any of them runs; an error lists "
        "the rows that are wrong. Rows run with a low priority and cost what single calls cost. With `dryRun=true` the "
        "response is the estimate, and nothing is stored.",
    ),
    "list_batches": Operation("Batches", "Lists the batches of the organization, newest first."),
    "retrieve_batch": Operation("Batches", "Returns the state of a batch, its counts and what it has cost so far."),
    "download_results": Operation(
        "Batches",
        "Returns a line of JSON for each row that has ended, in the order of the file, with `custom_id` and the "
        "response or the error. URLs are fresh. With `format=zip`, a zip with these lines and the files.",
    ),
    "pause_batch": Operation("Batches", "Begins no more rows of a batch. Those that run go on to their ends."),
    "resume_batch": Operation(
        "Batches", "Begins rows of a paused batch again. `max_cost` and `concurrency` may be changed."
    ),
    "cancel_batch": Operation(
        "Batches", "Begins no more rows of a batch for good. Those that run go on to their ends, and are charged."
    ),
    "upload_file": Operation("Batches", "Uploads a file of the purpose `batch`, as OpenAI's clients do."),
    "list_uploads": Operation("Batches", "Lists the uploaded files of the organization."),
    "retrieve_upload": Operation("Batches", "Returns what is known of a file; of the results of a batch, no size."),
    "download_upload": Operation("Batches", "Returns an uploaded file, or the results or the errors of a batch."),
    "delete_upload": Operation("Batches", "Deletes an uploaded file. Batches that were made of it stay."),
    "create_openai_batch": Operation(
        "Batches",
        "Creates a batch of an uploaded file, in OpenAI's shape. A file with faulty lines is refused at once.",
    ),
    "list_openai_batches": Operation("Batches", "Lists batches, newest first, in OpenAI's shape."),
    "retrieve_openai_batch": Operation("Batches", "Returns a batch in OpenAI's shape; a paused one is in progress."),
    "cancel_openai_batch": Operation("Batches", "Begins no more rows of a batch for good."),
    **{name: Operation("Trials", about) for name, about in TRIAL_OPERATIONS.items()},
    "list_models": Operation(
        "Models",
        "Lists the models that the key may call, and the aliases of its organization, each with `alias_of`. "
        "`schema=true` adds the parameters of each, `details=true` who serves it.",
    ),
    "retrieve_model": Operation(
        "Models", "Returns one model by its id, its alias, or its id with the prefix of a provider."
    ),
    "list_requests": Operation(
        "Requests",
        "Lists the records of calls, newest first. Filters can be combined. `format=csv` returns everything that "
        "matches. With the `ETag` of an earlier response in `If-None-Match`, the status is 304 if nothing has changed.",
    ),
    "retrieve_request": Operation(
        "Requests", "Returns one record: status, cost with its parts, every attempt, stored files, webhook deliveries."
    ),
    "retrieve_payloads": Operation(
        "Requests", "Returns what is stored of a request: what the caller sent and what came back."
    ),
    "purge": Operation(
        "Requests",
        "Deletes for good what is stored of a finished request, its files and its recordings. Cost and times stay.",
    ),
    "list_outputs": Operation(
        "Library",
        "Lists the images, videos and sounds of the organization that are still stored, newest first. Filters can be "
        "combined. `made_from` and `used_in` lead from an image to its edits and videos, and back.",
    ),
    "retrieve_output": Operation("Library", "Returns one output with fresh URLs."),
    "change_output": Operation(
        "Library",
        "Makes an output a favorite, or keeps the outputs of its request longer: at most `media_retention_max` from "
        "now. Outputs of other keys are kept by keys with the `admin` scope only.",
    ),
    "share_output": Operation(
        "Library",
        "Returns a URL by which anybody can open the file until it expires. It works at most as long as the file is "
        "kept. Outputs of other keys are shared by keys with the `admin` scope only.",
    ),
    "unshare_output": Operation("Library", "Refuses all URLs by which an output was shared, from now on."),
    "verify_file": Operation(
        "Requests",
        "Says whether this gateway delivered a file to your organization, and what its Content Credentials say: who "
        "signed it, with which model it was made, and from what. Costs nothing.",
    ),
    "verify_page": Operation("Pages", "The page that verifies files of anybody, where `public_verify` is set."),
    "verify_for_anybody": Operation(
        "Pages",
        "Says what the Content Credentials of a file tell, and whether this gateway signed it; only where "
        "`public_verify` is set, and ten times a minute from one address.",
    ),
    "retrieve_usage": Operation(
        "Usage",
        "Sums requests up by hour, day, week or month in UTC: counts by outcome, cost, tokens, success rate, latency. "
        "`group_by` also gives the figures of each model, provider, key, kind, user, session or value of a label.",
    ),
    "forecast_usage": Operation(
        "Usage",
        "Forecasts what this month (UTC) will cost, and when its budget is used up, from the last 28 days. With "
        "`label.customer=acme`, the month of this value.",
    ),
    "run_drill": Operation(
        "Usage",
        "Says what would have become of the requests of a window if providers had been down, slow or dearer: which "
        "would have been served by another one, waited or failed, and what that would have cost. Nothing is called.",
    ),
    "export_focus": Operation(
        "Usage",
        "Returns the costs of a month as CSV in the columns of FOCUS 1.2: a row per day, model, provider, key and set "
        "of labels.",
    ),
    "list_labels": Operation("Labels", "Returns the labels that the organization has declared."),
    "declare_labels": Operation(
        "Labels",
        "Replaces the declared labels. A call without a required label is refused. Records keep the labels that they "
        "have.",
    ),
    "list_label_budgets": Operation("Labels", "Lists the budgets of values of labels and what they spent this month."),
    "set_label_budget": Operation(
        "Labels", "Sets what a value may spend in a month. The value `*` stands for each one without its own budget."
    ),
    "remove_label_budget": Operation("Labels", "Removes the budget of a value."),
    "list_failures": Operation("Usage", "Lists the most frequent failures with the newest message of each."),
    "retrieve_balance": Operation(
        "Usage", "Returns what is available and held, and how long it lasts at the pace of the last seven days."
    ),
    "list_keys": Operation("Keys", "Lists the keys of the organization with their limits, last use and spending."),
    "create_key": Operation("Keys", "Creates a key. The response is the only one that contains the key itself."),
    "retrieve_key": Operation("Keys", "Returns one key of the organization."),
    "change_key": Operation(
        "Keys", "Changes what the body names; null removes a limit. Other processes notice within two seconds."
    ),
    "revoke_key": Operation("Keys", "Ends a key for good. Its records stay."),
    "list_own_keys": Operation("Keys", "Lists the active keys of the person who is signed in; keys have none."),
    "make_own_key": Operation(
        "Keys",
        "Makes a key for the person who is signed in, within the organization's limits, which count where the body "
        "names none. It has no scopes, and is revoked when the person loses the role, is deactivated or signs out "
        "everywhere. The response is the only one that contains the key itself.",
    ),
    "revoke_own_key": Operation("Keys", "Ends a key of the person who is signed in for good. Its records stay."),
    "retrieve_own_key_limits": Operation("Keys", "Returns what limits the keys that people make for themselves."),
    "set_own_key_limits": Operation(
        "Keys", "Replaces the limits of the keys that people make from now on; what the body leaves out is unlimited."
    ),
    "retrieve_own_key": Operation("Keys", "Returns the key that this call is made with, and its scopes."),
    "begin_session": Operation(
        "Pages",
        "Begins a session of the dashboard that acts through the key of this call, and sets its cookie, which scripts "
        "cannot read. Calls with the cookie are taken from the pages of this gateway only.",
    ),
    "retrieve_session": Operation("Pages", "Returns who is signed in: the key, its scopes and its organization."),
    "end_session": Operation("Pages", "Ends the session, with `everywhere=true` all of them, and removes the cookie."),
    "list_ways_to_sign_in": Operation("Pages", "Returns what the sign-in page offers: a key, an issuer or a proxy."),
    "begin_sign_in": Operation(
        "Pages",
        "Sends the browser to the issuer, or begins the session of whom a proxy names; for browsers, not for programs.",
    ),
    "end_sign_in": Operation("Pages", "Where the issuer sends the browser back to; begins the session."),
    "sign_out": Operation(
        "Pages",
        "Ends the sessions of the person in a logout token of the issuer: OpenID Connect's back-channel logout.",
    ),
    "move_session": Operation("Pages", "Lets the session of a person act in another of their organizations."),
    "list_users": Operation(
        "Keys",
        "Lists the people who may sign in with the issuer, their roles, and those who wait for one. Operators see all.",
    ),
    "invite": Operation(
        "Keys",
        "Invites a person: whoever signs in over the link with this verified e-mail address gets the role. The link is "
        "good once, for seven days. No mail is sent.",
    ),
    "list_invitations": Operation("Keys", "Lists the invitations that are neither used nor over."),
    "withdraw_invitation": Operation("Keys", "Takes an invitation back."),
    "change_user": Operation("Keys", "Gives a role or takes it, or deactivates a person. It counts at once."),
    "list_audit_events": Operation(
        "Audit log",
        "Lists administrative acts, newest first: those of the organization for the scope `admin`, all for `operator`. "
        "`format=jsonl` and `format=csv` return everything that matches. `head` is the end of the chain.",
    ),
    "retrieve_webhook_secret": Operation("Webhooks", "Returns the secret that signs the organization's messages."),
    "rotate_webhook_secret": Operation(
        "Webhooks", "Sets a new secret. For `overlap_hours` deliveries carry the signatures of both."
    ),
    "list_messages": Operation("Webhooks", "Lists messages to receivers with every delivery, newest first."),
    "retrieve_message": Operation("Webhooks", "Returns one message with its body and its deliveries."),
    "redeliver_exhausted_messages": Operation(
        "Webhooks", "Sends all messages again that could not be delivered, and returns how many they are."
    ),
    "redeliver_message": Operation("Webhooks", "Sends a message again, with the same id and body."),
    "send_test_event": Operation(
        "Webhooks", "Sends a signed event of type `webhook.test` once, and returns how the receiver responded."
    ),
    "list_recordings": Operation("Recordings", "Lists recordings, newest first."),
    "import_recording": Operation(
        "Recordings", "Imports a recording as it was exported. The same contents are imported once."
    ),
    "retrieve_recording": Operation("Recordings", "Returns one recording with the request that it matches."),
    "delete_recording": Operation("Recordings", "Deletes a recording and its files."),
    "export_recording": Operation("Recordings", "Returns a recording as one JSON document that includes its files."),
    "list_settings": Operation(
        "Installation", "Lists the settings in force and where each comes from. Values that may be secret are null."
    ),
    "list_alerts": Operation(
        "Installation", "Lists what was sent to `alert_url` about budgets and balances, with every delivery."
    ),
    "retrieve_alert_secret": Operation("Installation", "Returns the secret that signs alerts."),
    "send_test_alert": Operation("Installation", "Sends a signed test event to `alert_url` once."),
    "redeliver_alert": Operation("Installation", "Sends an alert again, with the same id and body."),
    "list_organizations": Operation(
        "Installation", "Lists all organizations with their balances, limits and spending of this month."
    ),
    "retrieve_organization": Operation("Installation", "Returns one organization."),
    "change_organization": Operation(
        "Installation",
        "Changes the name, the budget per month or the storage quota; null removes a limit. All keys of the "
        "organization share the budget.",
    ),
    "create_organization": Operation("Installation", "Creates an organization, without keys and without credit."),
    "create_key_for_organization": Operation("Installation", "Creates a key of any organization."),
    "list_credits": Operation("Installation", "Lists what was credited to an organization."),
    "add_credit_to_organization": Operation("Installation", "Adds credit to an organization."),
    "list_providers": Operation(
        "Installation", "Lists providers, the variables that those which are off lack, and the health of their models."
    ),
    "check_provider": Operation(
        "Installation",
        "Makes the cheapest call to a provider and says whether it works. It costs what such a call costs.",
    ),
    "list_metrics": Operation("Installation", "Returns the metrics of this process in the text format of Prometheus."),
    "download_shown": Operation("Files", "Returns an output that a voter was shown, under a neutral name."),
    "download_file": Operation("Files", "Returns a stored file. The URL comes from another response and expires."),
    "receive_callback": Operation("Files", "Takes the notice of a provider that a job has ended; not for callers."),
    "page": Operation("Pages", "The dashboard."),
    "vote_page": Operation("Pages", "The page on which people vote on the outputs of a trial."),
    "page_part": Operation("Pages", "A script, a style or a font of the pages."),
    "manual_home": Operation("Pages", "The first page of the documentation."),
    "manual_page": Operation("Pages", "A page; with `.md` at the end its Markdown; or a file that pages refer to."),
    "llms_txt": Operation("Pages", "The pages of the documentation with a sentence about each."),
    "llms_full_txt": Operation("Pages", "The Markdown of all pages in one text."),
    "openapi_document": Operation("Pages", "This description of the API, in OpenAPI 3.1."),
    "alive": Operation("Health", "Succeeds while the process runs."),
    "ready": Operation("Health", "Succeeds while the process can take calls: not stopping, and the database writable."),
    **ACCOUNT_OPERATIONS,
}
