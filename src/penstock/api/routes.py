"""Every path of the API, with one row for each of its methods."""

from functools import cache

import msgspec

from penstock.api.endpoints import (
    accounts,
    alerts,
    aliases,
    audit_log,
    balance,
    batches,
    callbacks,
    destinations,
    drills,
    files,
    health,
    invitations,
    keys,
    labels,
    metrics,
    models,
    openai_batches,
    orgs,
    outputs,
    pages,
    providers,
    recordings,
    requests,
    sessions,
    settings,
    sign_in,
    spend,
    trials,
    usage,
    users,
    voices,
    votes,
    webhooks,
)
from penstock.api.endpoints.accounts import (
    ACCOUNT_CHANGE_FIELDS,
    ACCOUNT_FIELDS,
    ACCOUNT_ROTATE_FIELDS,
    DELETE_QUERY,
)
from penstock.api.endpoints.alerts import ALERTS_QUERY
from penstock.api.endpoints.batches import BATCH_FIELDS, BATCHES_QUERY, RESULTS_QUERY, RESUME_FIELDS
from penstock.api.endpoints.destinations import (
    DESTINATION_CHANGE_FIELDS,
    DESTINATION_FIELDS,
    DESTINATION_KEY_FIELDS,
)
from penstock.api.endpoints.generations import (
    CALL_HEADERS,
    DRY_RUN,
    SOUNDS_QUERY,
    SPEECH_QUERY,
    VIDEOS_QUERY,
    list_sounds,
    list_videos,
)
from penstock.api.endpoints.keys import CHANGE_FIELDS, KEY_FIELDS, KEYS_QUERY
from penstock.api.endpoints.labels import BUDGET_FIELDS, LABEL_FIELDS
from penstock.api.endpoints.models import MODEL_QUERY, MODELS_QUERY
from penstock.api.endpoints.orgs import CREDIT_FIELDS, CREDITS_QUERY, ORG_CHANGE_FIELDS, ORG_FIELDS
from penstock.api.endpoints.outputs import OUTPUT_FIELDS, OUTPUTS_QUERY, SHARE_FIELDS
from penstock.api.endpoints.providers import CHECK_FIELDS
from penstock.api.endpoints.recordings import RECORDING_FIELDS, RECORDINGS_QUERY
from penstock.api.endpoints.requests import REQUESTS_QUERY
from penstock.api.endpoints.spend import FOCUS_QUERY, FORECAST_QUERY
from penstock.api.endpoints.usage import FAILURES_QUERY, USAGE_QUERY
from penstock.api.endpoints.webhooks import MESSAGES_QUERY, ROTATE_FIELDS, TRIAL_FIELDS
from penstock.api.openapi.document import build_document
from penstock.api.route import Route
from penstock.chat import repeats
from penstock.fields import CHAT, EDIT, IMAGE, RESPONSES, SOUND, SPEECH, TRANSCRIPTION, TRANSLATION, VIDEO
from penstock.gateway import Gateway
from penstock.generations import changed_videos, endpoints, openrouter_videos, retrieve, sounds, verify
from penstock.generations.cancel import cancel_sound, cancel_video
from penstock.generations.changed_videos import CHANGED_VIDEO, REMIX
from penstock.generations.openrouter_videos import OPENROUTER_VIDEO
from penstock.generations.payloads import retrieve_payloads
from penstock.generations.purge import purge
from penstock.http_server.request_head import HEALTH_PATHS
from penstock.schema import Call, Response
from penstock.speech.endpoint import MODALITY, create_speech
from penstock.transcription.endpoint import transcribe, translate


async def openapi_document(gateway: Gateway, call: Call) -> Response:
    """Return the OpenAPI document of the routes below."""
    return Response(body=_document())


# fmt: off
ROUTES: tuple[Route, ...] = (
    # The compatible API
    Route("POST", "/compat/v1/images/generations", endpoints.make_images, "Make images", takes="json", fields=IMAGE,
          query=DRY_RUN, headers=CALL_HEADERS, gives="ImageResult", also=((200, "Estimate"), (202, "ImageStatus")),
          modality="image", kind="image", generation=True, drains=True),
    Route("POST", "/compat/v1/images/edits", endpoints.edit_images, "Edit images", takes="json or form", fields=EDIT,
          query=DRY_RUN, headers=CALL_HEADERS, gives="ImageResult", also=((200, "Estimate"), (202, "ImageStatus")),
          modality="image", kind="edit", generation=True, drains=True),
    Route("GET", "/compat/v1/images/{id}", retrieve.image_status, "Retrieve images", gives="ImageStatus"),
    Route("POST", "/compat/v1/videos", endpoints.start_video, "Start a video", takes="json or form", fields=VIDEO,
          query=DRY_RUN, headers=CALL_HEADERS, gives="VideoCreated", status=202, also=((200, "Estimate"),),
          modality="video", kind="video", generation=True, drains=True),
    Route("POST", "/compat/v1/videos/edits", changed_videos.edit_video, "Edit a video", takes="json or form",
          fields=CHANGED_VIDEO, query=DRY_RUN, headers=CALL_HEADERS, gives="VideoCreated", status=202,
          also=((200, "Estimate"),), modality="video", kind="video", generation=True, drains=True),
    Route("POST", "/compat/v1/videos/extensions", changed_videos.extend_video, "Extend a video", takes="json or form",
          fields=CHANGED_VIDEO, query=DRY_RUN, headers=CALL_HEADERS, gives="VideoCreated", status=202,
          also=((200, "Estimate"),), modality="video", kind="video", generation=True, drains=True),
    Route("POST", "/compat/v1/videos/{id}/remix", changed_videos.remix_video, "Remix a video", takes="json",
          fields=REMIX, query=DRY_RUN, headers=CALL_HEADERS, gives="VideoCreated", status=202, also=((200, "Estimate"),),
          modality="video", kind="video", generation=True, drains=True),
    Route("POST", f"{openrouter_videos.PATH}/videos", openrouter_videos.start_openrouter_video, "Start a video in OpenRouter's shape",
          takes="json", fields=OPENROUTER_VIDEO, query=DRY_RUN, headers=CALL_HEADERS, gives="OpenRouterJob", status=202,
          also=((200, "Estimate"),), modality="video", kind="video", generation=True, drains=True),
    Route("GET", f"{openrouter_videos.PATH}/videos/models", openrouter_videos.list_openrouter_video_models,
          "List video models in OpenRouter's shape", gives="OpenRouterModels"),
    Route("GET", f"{openrouter_videos.PATH}/videos/{{id}}", openrouter_videos.openrouter_video,
          "Retrieve a video in OpenRouter's shape", gives="OpenRouterJob"),
    Route("GET", f"{openrouter_videos.PATH}/videos/{{id}}/content", files.download_openrouter_video, "Download a video at OpenRouter's path",
          query=files.CONTENT_QUERY, gives="file"),
    Route("GET", "/compat/v1/videos", list_videos, "List videos", query=VIDEOS_QUERY, gives="VideoList"),
    Route("GET", "/compat/v1/videos/{id}", retrieve.video, "Retrieve a video", gives="Video"),
    Route("GET", "/compat/v1/videos/{id}/content", files.download_video, "Download a video",
          query=files.CONTENT_QUERY, gives="file"),
    Route("DELETE", "/compat/v1/videos/{id}", cancel_video, "Cancel a video", status=204,
          also=((200, "VideoDeleted"),)),
    Route("POST", "/compat/v1/chat/completions", repeats.complete_chat, "Complete a chat", takes="json", fields=CHAT,
          query=DRY_RUN, headers=CALL_HEADERS, gives="ChatCompletion", also=((200, "Estimate"),), kind="chat",
          generation=True, drains=True),
    Route("POST", "/compat/v1/responses", repeats.create_response, "Create a response", takes="json",
          fields=RESPONSES, query=DRY_RUN, headers=CALL_HEADERS, gives="ModelResponse", also=((200, "Estimate"),),
          kind="chat", generation=True, drains=True),
    Route("POST", "/compat/v1/audio/speech", create_speech, "Speak a text", takes="json", fields=SPEECH,
          query=SPEECH_QUERY, headers=CALL_HEADERS, gives="Speech", gives_sound=True,
          also=((200, "Estimate"), (202, "Sound")), modality=MODALITY, kind="speech", generation=True, drains=True),
    Route("POST", "/compat/v1/audio/transcriptions", transcribe, "Transcribe a sound", takes="json or form",
          fields=TRANSCRIPTION, query=DRY_RUN, headers=CALL_HEADERS, gives="Transcription", gives_text=True,
          also=((200, "Estimate"),), modality=MODALITY, kind="transcription", generation=True, drains=True),
    Route("POST", "/compat/v1/audio/translations", translate, "Translate a sound into English", takes="json or form",
          fields=TRANSLATION, query=DRY_RUN, headers=CALL_HEADERS, gives="Transcription", gives_text=True,
          also=((200, "Estimate"),), modality=MODALITY, kind="transcription", generation=True, drains=True),
    Route("GET", "/compat/v1/audio/voices", voices.list_voices, "List voices", query=voices.VOICES_QUERY,
          gives="VoiceList", is_voice_list=True),
    Route("GET", "/compat/v1/audio/models", voices.list_speech_models, "List speech models", gives="SpeechModelList",
          is_voice_list=True),
    Route("POST", "/compat/v1/audio/generations", endpoints.start_sound, "Make a sound or music", takes="json",
          fields=SOUND, query=DRY_RUN, headers=CALL_HEADERS, gives="Sound", status=202,
          also=((200, "Estimate"), (200, "Sound")), modality=MODALITY, kind="sound", generation=True, drains=True),
    Route("GET", "/compat/v1/audio/generations", list_sounds, "List sounds", query=SOUNDS_QUERY, gives="SoundList"),
    Route("GET", "/compat/v1/audio/generations/{id}", sounds.sound, "Retrieve a sound", gives="Sound"),
    Route("GET", "/compat/v1/audio/generations/{id}/content", files.download_sound, "Download a sound",
          query=files.SOUND_QUERY, gives="file"),
    Route("DELETE", "/compat/v1/audio/generations/{id}", cancel_sound, "Cancel a sound", status=204,
          also=((200, "SoundDeleted"),)),
    Route("GET", "/compat/v1/models", models.list_models, "List models", query=MODELS_QUERY, gives="ModelList"),
    Route("GET", "/compat/v1/models/{model:path}", models.retrieve_model, "Retrieve a model",
          query=MODEL_QUERY, gives="Model"),

    Route("POST", "/compat/v1/files", openai_batches.upload_file, "Upload a file", takes="form",
          fields=openai_batches.FILE_FIELDS, gives="File", drains=True),
    Route("GET", "/compat/v1/files", openai_batches.list_uploads, "List files",
          query=openai_batches.COMPAT_LIST_QUERY, gives="FileList"),
    Route("GET", "/compat/v1/files/{file_id}", openai_batches.retrieve_upload, "Retrieve a file", gives="File"),
    Route("GET", "/compat/v1/files/{file_id}/content", openai_batches.download_upload, "Download a file",
          gives="jsonl"),
    Route("DELETE", "/compat/v1/files/{file_id}", openai_batches.delete_upload, "Delete a file", gives="FileDeleted"),
    Route("POST", "/compat/v1/batches", openai_batches.create_openai_batch, "Create a batch of an uploaded file",
          takes="json", fields=openai_batches.COMPAT_BATCH_FIELDS, gives="OpenAiBatch", drains=True),
    Route("GET", "/compat/v1/batches", openai_batches.list_openai_batches, "List batches in OpenAI's shape",
          query=openai_batches.COMPAT_LIST_QUERY[:2], gives="OpenAiBatchList"),
    Route("GET", "/compat/v1/batches/{batch_id}", openai_batches.retrieve_openai_batch,
          "Retrieve a batch in OpenAI's shape", gives="OpenAiBatch"),
    Route("POST", "/compat/v1/batches/{batch_id}/cancel", openai_batches.cancel_openai_batch,
          "Cancel a batch as OpenAI's clients do", gives="OpenAiBatch"),

    # The native account API
    Route("GET", "/v1/requests", requests.list_requests, "List request records",
          query=REQUESTS_QUERY, gives="RequestList", is_tagged=True),
    Route("GET", "/v1/requests/{request_id}", requests.retrieve_request, "Retrieve a request record", gives="Request",
          is_tagged=True),
    Route("GET", "/v1/requests/{request_id}/payloads", retrieve_payloads, "Read what is stored of a request",
          gives="Payloads"),
    Route("DELETE", "/v1/requests/{request_id}/payloads", purge, "Purge the payloads of a request",
          gives="Purged"),
    Route("GET", "/v1/outputs", outputs.list_outputs, "List outputs", query=OUTPUTS_QUERY, gives="OutputList"),
    Route("GET", "/v1/outputs/{output_id}", outputs.retrieve_output, "Retrieve an output", gives="Output"),
    Route("PATCH", "/v1/outputs/{output_id}", outputs.change_output, "Keep an output or make it a favorite",
          takes="json", fields=OUTPUT_FIELDS, gives="Output"),
    Route("POST", "/v1/outputs/{output_id}/share", outputs.share_output, "Share an output by URL",
          takes="json", fields=SHARE_FIELDS, gives="OutputShare"),
    Route("DELETE", "/v1/outputs/{output_id}/share", outputs.unshare_output, "Revoke the shared URLs of an output",
          status=204),
    Route("POST", "/v1/verify", verify.verify_file, "Verify where a file comes from", takes="json or form",
          fields=verify.FIELDS, gives="Verification"),
    Route("GET", "/v1/usage", usage.retrieve_usage, "Sum up requests over time", query=USAGE_QUERY, gives="Usage"),
    Route("GET", "/v1/usage/failures", usage.list_failures, "List the most frequent failures",
          query=FAILURES_QUERY, gives="FailureList"),
    Route("GET", "/v1/usage/forecast", spend.forecast_usage, "Forecast the month", query=FORECAST_QUERY,
          gives="Forecast"),
    Route("GET", "/v1/usage/focus", spend.export_focus, "Export the costs of a month in the FOCUS format",
          query=FOCUS_QUERY, gives="csv"),
    Route("GET", "/v1/drill", drills.run_drill, "Rehearse an outage", query=drills.DRILL_QUERY, gives="Drill"),
    Route("POST", "/v1/batches", batches.create_batch, "Create a batch", takes="json or form", fields=BATCH_FIELDS,
          query=DRY_RUN, gives="Batch", also=((200, "BatchEstimate"),), drains=True),
    Route("GET", "/v1/batches", batches.list_batches, "List batches", query=BATCHES_QUERY, gives="BatchList"),
    Route("GET", "/v1/batches/{batch_id}", batches.retrieve_batch, "Retrieve a batch", gives="Batch"),
    Route("GET", "/v1/batches/{batch_id}/results", batches.download_results, "Download the results of a batch",
          query=RESULTS_QUERY, gives="jsonl"),
    Route("POST", "/v1/batches/{batch_id}/pause", batches.pause_batch, "Pause a batch", gives="Batch"),
    Route("POST", "/v1/batches/{batch_id}/resume", batches.resume_batch, "Resume a batch", takes="json",
          fields=RESUME_FIELDS, gives="Batch"),
    Route("POST", "/v1/batches/{batch_id}/cancel", batches.cancel_batch, "Cancel a batch", gives="Batch"),
    Route("POST", "/v1/trials", trials.create_trial, "Create a trial of models", takes="json or form",
          fields=trials.TRIAL_FIELDS, query=DRY_RUN, gives="Trial", also=((200, "TrialEstimate"),), drains=True),
    Route("GET", "/v1/trials", trials.list_trials, "List trials", query=trials.TRIALS_QUERY, gives="TrialList"),
    Route("GET", "/v1/trials/{trial_id}", trials.retrieve_trial, "Retrieve a trial and its results",
          gives="TrialResults"),
    Route("DELETE", "/v1/trials/{trial_id}", trials.delete_trial, "Delete a trial", status=204),
    Route("POST", "/v1/trials/{trial_id}/link", trials.share_trial, "Make the link by which people vote",
          takes="json", fields=trials.LINK_FIELDS, gives="TrialLink"),
    Route("POST", "/v1/trials/{trial_id}/verdict", trials.decide_trial, "Use the model that won", access="admin",
          takes="json", fields=trials.VERDICT_FIELDS, query=DRY_RUN, gives="TrialVerdict"),
    Route("DELETE", "/v1/trials/{trial_id}/link", trials.unshare_trial, "Revoke the link by which people vote",
          status=204),
    Route("GET", "/v1/aliases", aliases.list_aliases, "List aliases of models", gives="AliasList"),
    Route("PUT", "/v1/aliases/{alias:path}", aliases.put_alias, "Set an alias of a model",
          access="admin", takes="json", fields=aliases.ALIAS_FIELDS, gives="Alias"),
    Route("DELETE", "/v1/aliases/{alias:path}", aliases.delete_alias, "Remove an alias", access="admin", status=204),
    Route("GET", "/v1/labels", labels.list_labels, "List the declared labels", gives="Labels"),
    Route("PUT", "/v1/labels", labels.declare_labels, "Declare labels",
          access="admin", takes="json", fields=LABEL_FIELDS, gives="Labels"),
    Route("GET", "/v1/label-budgets", labels.list_label_budgets, "List the budgets of labels", gives="LabelBudgetList"),
    Route("PUT", "/v1/label-budgets/{name}/{value}", labels.set_label_budget, "Set the budget of a label's value",
          access="admin", takes="json", fields=BUDGET_FIELDS, gives="LabelBudget"),
    Route("DELETE", "/v1/label-budgets/{name}/{value}", labels.remove_label_budget,
          "Remove the budget of a label's value", access="admin", status=204),
    Route("GET", "/v1/destinations", destinations.list_destinations, "List destinations",
          access="admin", gives="DestinationList"),
    Route("POST", "/v1/destinations", destinations.add_destination, "Add a destination",
          access="admin", takes="json", fields=DESTINATION_FIELDS, gives="Destination"),
    Route("PATCH", "/v1/destinations/{destination_id}", destinations.change_destination, "Change a destination",
          access="admin", takes="json", fields=DESTINATION_CHANGE_FIELDS, gives="Destination"),
    Route("POST", "/v1/destinations/{destination_id}/rotate", destinations.rotate_destination,
          "Replace the keys of a destination", access="admin", takes="json", fields=DESTINATION_KEY_FIELDS,
          gives="Destination"),
    Route("POST", "/v1/destinations/{destination_id}/check", destinations.check_destination,
          "Check a destination with a real file", access="admin", gives="Destination"),
    Route("DELETE", "/v1/destinations/{destination_id}", destinations.delete_destination, "Delete a destination",
          access="admin", status=204),
    Route("GET", "/v1/audit", audit_log.list_audit_events, "List who changed what",
          query=audit_log.AUDIT_QUERY, gives="AuditEventList"),
    Route("GET", "/v1/keys", keys.list_keys, "List keys", query=KEYS_QUERY, gives="KeyList"),
    Route("POST", "/v1/keys", keys.create_key, "Create a key",
          access="admin", takes="json", fields=KEY_FIELDS, gives="NewKey"),
    Route("GET", "/v1/keys/{key_id}", keys.retrieve_key, "Retrieve a key", gives="Key"),
    Route("PATCH", "/v1/keys/{key_id}", keys.change_key, "Change a key",
          access="admin", takes="json", fields=CHANGE_FIELDS, gives="Key"),
    Route("DELETE", "/v1/keys/{key_id}", keys.revoke_key, "Revoke a key", access="admin", gives="Key"),
    Route("GET", "/v1/key", keys.retrieve_own_key, "Retrieve the key of this call", gives="Key"),
    Route("POST", "/v1/session", sessions.begin_session, "Begin a session of the pages", takes="json",
          fields=sessions.SESSION_FIELDS, gives="Session"),
    Route("GET", "/v1/session", sessions.retrieve_session, "Retrieve who is signed in", gives="Session"),
    Route("DELETE", "/v1/session", sessions.end_session, "Sign out", query=sessions.END_QUERY, status=204),
    Route("POST", "/v1/session/org", sign_in.move_session, "Act in another organization",
          takes="json", fields=sign_in.ORG_FIELDS, status=204),
    Route("GET", "/v1/users", users.list_users, "List people", access="admin", gives="UserList"),
    Route("PATCH", "/v1/users/{user_id}", users.change_user, "Change what a person may do",
          access="admin", takes="json", fields=users.USER_FIELDS, gives="User"),
    Route("GET", "/v1/invitations", invitations.list_invitations, "List open invitations", access="admin",
          gives="InvitationList"),
    Route("POST", "/v1/invitations", invitations.invite, "Invite a person",
          access="admin", takes="json", fields=invitations.INVITATION_FIELDS, gives="NewInvitation"),
    Route("DELETE", "/v1/invitations/{invitation_id}", invitations.withdraw_invitation, "Take an invitation back",
          access="admin", status=204),
    Route("GET", "/v1/balance", balance.retrieve_balance, "Read the balance", gives="Balance"),
    Route("GET", "/v1/webhooks/secret", webhooks.retrieve_webhook_secret, "Read the webhook secret", gives="WebhookSecret"),
    Route("POST", "/v1/webhooks/secret/rotate", webhooks.rotate_webhook_secret, "Rotate the webhook secret",
          access="admin", takes="json", fields=ROTATE_FIELDS, gives="WebhookSecret"),
    Route("GET", "/v1/webhooks/messages", webhooks.list_messages, "List webhook messages",
          query=MESSAGES_QUERY, gives="WebhookMessageList"),
    Route("GET", "/v1/webhooks/messages/{message_id}", webhooks.retrieve_message, "Retrieve a webhook message",
          gives="WebhookMessage"),
    Route("POST", "/v1/webhooks/messages/redeliver", webhooks.redeliver_exhausted_messages,
          "Deliver all exhausted webhook messages again", access="admin", gives="WebhookRedelivery"),
    Route("POST", "/v1/webhooks/messages/{message_id}/redeliver", webhooks.redeliver_message,
          "Deliver a webhook message again", access="admin", gives="WebhookMessage"),
    Route("POST", "/v1/webhooks/test", webhooks.send_test_event, "Send a test event",
          access="admin", takes="json", fields=TRIAL_FIELDS, gives="WebhookTest"),

    Route("GET", "/v1/alerts", alerts.list_alerts, "List alerts to the operator",
          access="operator", query=ALERTS_QUERY, gives="WebhookMessageList"),
    Route("GET", "/v1/alerts/secret", alerts.retrieve_alert_secret, "Read the secret that signs alerts",
          access="operator", gives="AlertSecret"),
    Route("POST", "/v1/alerts/test", alerts.send_test_alert, "Send a test event to the operator",
          access="operator", gives="WebhookTest"),
    Route("POST", "/v1/alerts/{message_id}/redeliver", alerts.redeliver_alert, "Deliver an alert again",
          access="operator", gives="WebhookMessage"),
    Route("GET", "/v1/settings", settings.list_settings, "List the settings in force",
          access="operator", gives="SettingList"),
    Route("GET", "/v1/orgs", orgs.list_organizations, "List organizations", access="operator", gives="OrganizationList"),
    Route("POST", "/v1/orgs", orgs.create_organization, "Create an organization",
          access="operator", takes="json", fields=ORG_FIELDS, gives="Organization"),
    Route("GET", "/v1/orgs/{org_id}", orgs.retrieve_organization, "Retrieve an organization",
          access="operator", gives="Organization"),
    Route("PATCH", "/v1/orgs/{org_id}", orgs.change_organization, "Change an organization",
          access="operator", takes="json", fields=ORG_CHANGE_FIELDS, gives="Organization"),
    Route("POST", "/v1/orgs/{org_id}/keys", orgs.create_key_for_organization, "Create a key of an organization",
          access="operator", takes="json", fields=KEY_FIELDS, gives="NewKey"),
    Route("GET", "/v1/orgs/{org_id}/credits", orgs.list_credits, "List credits",
          access="operator", query=CREDITS_QUERY, gives="CreditList"),
    Route("POST", "/v1/orgs/{org_id}/credits", orgs.add_credit_to_organization, "Add credit",
          access="operator", takes="json", fields=CREDIT_FIELDS, gives="Credit"),
    Route("GET", "/v1/accounts", accounts.list_accounts, "List accounts at vendors",
          access="key", gives="AccountList"),
    Route("POST", "/v1/accounts", accounts.add_account, "Add an account at a vendor",
          access="key", takes="json", fields=ACCOUNT_FIELDS, gives="Account"),
    Route("PATCH", "/v1/accounts/{account_id}", accounts.change_account, "Change an account",
          access="key", takes="json", fields=ACCOUNT_CHANGE_FIELDS, gives="Account"),
    Route("POST", "/v1/accounts/{account_id}/rotate", accounts.rotate_account, "Replace the credential of an account",
          access="key", takes="json", fields=ACCOUNT_ROTATE_FIELDS, gives="Account"),
    Route("DELETE", "/v1/accounts/{account_id}", accounts.delete_account, "Delete an account",
          access="key", query=DELETE_QUERY, status=204, also=((200, "Account"),)),
    Route("GET", "/v1/providers", providers.list_providers, "List providers and their health",
          access="operator", gives="ProviderList"),
    Route("POST", "/v1/providers/{provider}/check", providers.check_provider, "Check a provider with a real call",
          access="operator", takes="json", fields=CHECK_FIELDS, query=DRY_RUN, gives="ProviderCheck", drains=True),

    Route("GET", "/v1/recordings", recordings.list_recordings, "List recordings",
          query=RECORDINGS_QUERY, gives="RecordingList"),
    Route("POST", "/v1/recordings", recordings.import_recording, "Import a recording",
          takes="json", fields=RECORDING_FIELDS, gives="Recording"),
    Route("GET", "/v1/recordings/{recording_id}", recordings.retrieve_recording, "Retrieve a recording",
          gives="Recording"),
    Route("DELETE", "/v1/recordings/{recording_id}", recordings.delete_recording, "Delete a recording",
          gives="RecordingDeleted"),
    Route("GET", "/v1/recordings/{recording_id}/export", recordings.export_recording, "Export a recording",
          gives="RecordingFile"),

    # Files, by signed URL
    Route("GET", "/m/{media_id}", files.download_file, "Download a file", access="signed", query=files.FILE_QUERY, gives="file"),

    # Votes by the link of a trial
    Route("GET", "/vote", pages.vote_page, "The page on which people vote", access="open", gives="page"),
    Route("POST", "/vote/pair", votes.show_pair, "Show two outputs", access="signed", takes="json",
          fields=votes.PAIR_FIELDS, gives="Pair", is_vote=True),
    Route("POST", "/vote", votes.add_vote, "Vote on two outputs", access="signed", takes="json",
          fields=votes.VOTE_FIELDS, gives="Vote", is_vote=True),
    Route("GET", "/vote/files/{file}", votes.download_shown, "Download an output that was shown", access="signed",
          gives="file", is_vote=True),

    # Callbacks from providers, at URLs that the gateway gave them
    Route("POST", "/callbacks/{provider}/{token}", callbacks.receive_callback, "Accept a callback from a provider",
          access="signed", takes="raw", status=204),

    # Signing in with an issuer
    Route("GET", "/auth/options", sign_in.list_ways_to_sign_in, "List the ways to sign in", access="open",
          gives="SignIn"),
    Route("GET", "/auth/login", sign_in.begin_sign_in, "Go to the issuer to sign in", access="open",
          query=sign_in.LOGIN_QUERY, gives="redirect", status=302),
    Route("GET", "/auth/callback", sign_in.end_sign_in, "Come back from the issuer", access="open",
          gives="redirect", status=302),

    # The dashboard
    Route("GET", "/", pages.page, "The dashboard", access="open", gives="page"),
    Route("GET", "/dashboard/{file:path}", pages.page_part, "Styles and scripts of the dashboard", access="open", gives="page"),

    # The documentation
    Route("GET", "/docs", pages.manual_home, "The documentation", access="open", gives="page"),
    Route("GET", "/docs/{page:path}", pages.manual_page, "A page of the documentation, or a file of it", access="open", gives="page"),
    Route("GET", "/llms.txt", pages.llms_txt, "The pages of the documentation, for language models", access="open", gives="page"),
    Route("GET", "/llms-full.txt", pages.llms_full_txt, "The whole documentation in one text", access="open", gives="page"),

    # Files of anybody, where `public_verify` is set
    Route("GET", "/verify", pages.verify_page, "The page that verifies files of anybody", access="open", gives="page",
          is_public_verify=True),
    Route("POST", "/verify", verify.verify_for_anybody, "Verify a file without a key", access="open", takes="json or form",
          fields=verify.PUBLIC_FIELDS, gives="PublicVerification", is_public_verify=True),

    # The process itself
    Route("GET", "/healthz", health.alive, "Whether the process runs", access="open", gives="Health"),
    Route("GET", "/readyz", health.ready, "Whether it can take calls", access="open", gives="Health"),
    Route("GET", "/metrics", metrics.list_metrics, "Metrics for Prometheus", access="metrics", gives="text"),
    Route("GET", "/openapi.json", openapi_document, "This document", access="open", gives="Document"),
)
# fmt: on

# What a worker with a port serves.
WORKER_ROUTES = tuple(route for route in ROUTES if route.path in (*HEALTH_PATHS, "/metrics"))


@cache
def _document() -> bytes:
    return msgspec.json.encode(build_document(ROUTES))
