// A strict OpenID Connect issuer for the tests: oidc-provider, which signs everybody in as Anna without asking.

import http from "node:http";
import Provider from "oidc-provider";

const redirectUri = process.env.REDIRECT_URI;
const server = http.createServer((request, response) => handle(request, response));
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [{ client_id: "penstock", client_secret: "issuer-canary-5711", redirect_uris: [redirectUri] }],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"], groups: ["groups"] },
  scopes: ["openid", "email", "profile", "groups"],
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  pkce: { required: () => true },
  cookies: { keys: ["of a test"] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@studio.example`, email_verified: true, name: "Anna", groups: ["leads"] }),
  }),
});

async function handle(request, response) {
  if (!request.url.startsWith("/interaction/")) return provider.callback()(request, response);
  const { prompt, params, session } = await provider.interactionDetails(request, response);
  if (prompt.name === "login") return provider.interactionFinished(request, response, { login: { accountId: "anna" } });
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
}

console.log(issuer);
