"""Find how an English word is spoken from its letters, by rules.

Each rule names letters, what may stand before and after them, and their phonemes; the first rule that fits is used.
The method is that of a report of the Naval Research Laboratory of 1976.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

# What may stand around the letters of a rule: `#` vowels, `:` any consonants, `^` one consonant, `.` a voiced
# consonant, `+` a front vowel, `%` an ending, `&` a sibilant, `@` a consonant after which a long u is plain, and `_`
# the end of the word.
_CLASSES: Mapping[str, str] = {
    "#": "[aeiouy]+",
    ":": "[^aeiouy]*",
    "^": "[^aeiouy]",
    ".": "[bdvgjlmnrwz]",
    "+": "[eiy]",
    "%": "(?:er|es|ed|ing|ely|e)(?![a-z])",
    "&": "(?:[scgzxj]|ch|sh)",
    "@": "(?:[tsrdlznj]|th|ch|sh)",
    "_": "",
}
_RULES = """
a  _[a]_=AX  _[are]_=AA R  _[ar]o=AX R  [ar]#=EH R  ^[as]#=EY S  [a]wa=AX  [aw]=AO  _:[any]=EH N IY  [a]^+#=EY
a  #:[ally]=AX L IY
a  _[al]#=AX L  [again]=AX G EH N  #:[ag]e=IH JH  [a]^+:#=AE  _:[a]^+_=EY  [a]^%=EY  _[arr]=AX R  [arr]=AE R
a  _:[ar]_=AA R  [ar]_=ER
a  [ar]=AA R  [air]=EH R  [ai]=EY  [ay]=EY  [au]=AO  #:[al]_=AX L  #:[als]_=AX L Z  [alk]=AO K  [al]^=AO L
a  _:[able]=EY B AX L
a  [able]=AX B AX L  [ang]+=EY N JH  [a]=AE
b  [b]t_=  m[b]_=  _[be]^#=B IH  [being]=B IY IH NG  _[both]_=B OW TH  _[bus]#=B IH Z  [buil]=B IH L  [bb]=B  [b]=B
c  _[ch]^=K  ^e[ch]=K  [ch]=CH  _s[ci]#=S AY  [ci]a=SH  [ci]o=SH  [ci]en=SH  [cc]+=K S  [cc]=K  [ck]=K  [com]%=K AH M
c  [c]+=S  [c]=K
d  #:[ded]_=D IH D  .e[d]_=D  #^:e[d]_=T  _[de]^#=D IH  [dge]=JH  [dg]+=JH  [dd]=D  [du]a=JH UW  [d]=D
e  #:[e]_=  _^:[e]_=IY  _:[e]_=IY  #[ed]_=D  [ev]er=EH V  [e]^%=IY  [eri]#=IY R IY  [eri]=EH R IH  #:[er]#=ER
e  [err]=EH R  [er]#=EH R
e  [er]=ER  _[even]=IY V EH N  #:[e]w=  @[ew]=UW  [ew]=Y UW  [e]o=IY  #:&[es]_=IH Z  #:[e]s_=  #:[ely]_=L IY
e  #:[ement]=M EH N T
e  [eful]=F UH L  [ee]=IY  [earn]=ER N  _[ear]^=ER  [ead]=EH D  #:[ea]_=IY AX  [ea]su=EH  [ear]=IH R  [ea]=IY
e  [eigh]=EY  [ei]=IY
e  _[eye]=AY  [ey]=IY  [eu]=Y UW  [e]=EH
f  [ful]=F UH L  [ff]=F  [f]=F
g  [giv]=G IH V  _[g]i^=G  [ge]t=G EH  su[gges]=G JH EH S  [gg]=G  _b#[g]=G  [gn]_=N  _[gn]=N  [gh]t=  [gh]_=  _[gh]=G
g  #[gh]=  [g]+=JH  [great]=G R EY T  [g]=G
h  _[hav]=HH AE V  _[here]=HH IY R  _[hour]=AW ER  [how]=HH AW  [h]#=HH  [h]=
i  _[in]=IH N  _[i]_=AY  [in]d=AY N  [ier]=IY ER  #:r[ied]=IY D  [ied]_=AY D  [ien]=IY EH N  [ie]t=AY EH  _:[i]%=AY
i  [i]%=IY  [ie]=IY  [i]^+:#=IH
i  [ir]#=AY R  [iz]%=AY Z  [is]%=AY Z  [i]d%=AY  +^[i]^+=IH  [i]t%=AY  #:^[i]^+=IH  [i]^+=AY  [ir]=ER  [igh]=AY
i  [ild]=AY L D  [ign]_=AY N  [ign]^=AY N  [ign]%=AY N
i  [ique]=IY K  [i]=IH
j  [j]=JH
k  _[k]n=  [kk]=K  [k]=K
l  [lo]c#=L OW  l[l]=  #^:[l]%=AX L  [lead]=L IY D  [l]=L
m  [mov]=M UW V  m[m]=  [m]=M
n  e[ng]+=N JH  [ng]r=NG G  [ng]#=NG G  [ngl]%=NG G AX L  [ng]=NG  [nk]=NG K  _[now]_=N AW  n[n]=  [n]=N
o  [of]_=AX V  [orough]=ER OW  #:[or]_=ER  #:[ors]_=ER Z  [or]=AO R  _[one]=W AH N  [ow]el=AW  [own]_=OW N  [ow]_=OW
o  [ow]^=AW  [ow]=OW  _[over]=OW V ER
o  [ov]=AH V  [o]^%=OW  [o]^en=OW  [o]^i#=OW  [ol]d=OW L  [ought]=AO T  [ough]=AH F  _[ou]=AW  h[ou]s#=AW  [ous]=AX S
o  [our]=AO R  [ould]=UH D
o  ^[ou]^l=AH  [oup]=UW P  [ou]=AW  [oy]=OY  [oing]=OW IH NG  [oi]=OY  [oor]=AO R  [ook]=UH K  [ood]=UH D  [oo]=UW
o  [o]e=OW  [o]_=OW  [oa]=OW
o  _[only]=OW N L IY  _[once]=W AH N S  [on't]=OW N T  c[o]n=AA  [o]ng=AO  _:^[o]n=AH  i[on]=AX N  #:[on]_=AX N
o  #^[on]=AX N  [o]st_=OW  [of]^=AO F
o  [other]=AH DH ER  [oss]_=AO S  #^:[om]=AH M  [o]=AA
p  [ph]=F  [peop]=P IY P  [pow]=P AW  [put]_=P UH T  _[ps]=S  _[pn]=N  p[p]=  [p]=P
q  [quar]=K W AO R  [qu]=K W  [q]=K
r  _[re]^#=R IY  r[r]=  [rh]=R  [r]=R
s  [sh]=SH  #[sion]=ZH AX N  [some]=S AH M  #[sur]#=ZH ER  [sur]#=SH ER  #[su]#=ZH UW  #[ssu]#=SH UW  #[sed]_=Z D
s  #[s]#=Z  [said]=S EH D  ^[sion]=SH AX N
s  s[s]=  .[s]_=Z  #:.e[s]_=Z  #:^##[s]_=Z  #:^#[s]_=S  u[s]_=S  _:#[s]_=Z  _[sch]=S K  [s]c+=  #[sm]=Z M
s  #[sn]'=Z AX N  [stle]=S AX L  [s]=S
t  _[the]_=DH AX  [to]_=T UW  [that]_=DH AE T  _[this]_=DH IH S  _[they]=DH EY  _[there]=DH EH R  [ther]=DH ER
t  [their]=DH EH R  _[than]_=DH AE N  _[them]_=DH EH M
t  _[these]_=DH IY Z  _[then]=DH EH N  [through]=TH R UW  [those]=DH OW Z  [though]_=DH OW  _[thus]=DH AH S  [th]=TH
t  #:[ted]_=T IH D  s[ti]#n=CH  [ti]o=SH  [ti]a=SH
t  [tien]=SH AX N  [tur]#=CH ER  [tu]a=CH UW  _[two]=T UW  [tch]=CH  t[t]=  [t]=T
u  _[un]i=Y UW N  _[un]=AH N  _[upon]=AX P AO N  @[ur]#=UH R  [ur]#=Y UH R  [ur]=ER  [u]^_=AH  [u]^^=AH  [uy]=AY
u  _g[u]#=  g[u]%=  g[u]#=W  #n[u]=Y UW  @[u]=UW  [u]=Y UW
v  [view]=V Y UW  [v]=V
w  _[were]=W ER  [wa]s=W AA  [wa]t=W AA  [where]=W EH R  [what]=W AH T  [whol]=HH OW L  [who]=HH UW  [wh]=W
w  [war]=W AO R  [wor]^=W ER  [wr]=R  [w]=W
x  _[x]=Z  [x]=K S
y  [young]=Y AH NG  _[you]=Y UW  _[yes]=Y EH S  _[y]=Y  #:^[y]_=IY  #:^[y]i=IY  _:[y]_=AY  _:[y]#=AY  _:[y]^+:#=IH
y  _:[y]^#=AY  [y]=IH
z  z[z]=  [z]=Z
'  [']=
"""


class _Rule(NamedTuple):
    before: re.Pattern[str]
    letters: str
    after: re.Pattern[str]
    phonemes: tuple[str, ...]


def spelled(word: str) -> list[str]:
    """The phonemes of a word in small letters."""
    phonemes: list[str] = []
    at = 0
    while at < len(word):
        rule = next((rule for rule in _rules().get(word[at], ()) if _fits(rule, word, at)), None)
        if rule is None:
            at += 1
            continue
        phonemes += rule.phonemes
        at += len(rule.letters)
    return phonemes


def _fits(rule: _Rule, word: str, at: int) -> bool:
    if not word.startswith(rule.letters, at):
        return False
    return rule.before.search(word[:at]) is not None and rule.after.match(word[at + len(rule.letters) :]) is not None


@cache
def _rules() -> Mapping[str, Sequence[_Rule]]:
    found: dict[str, list[_Rule]] = {}
    for line in _RULES.strip().splitlines():
        letter, _, rest = line.partition("  ")
        for written in re.findall(r"[^\s=]+=(?:[A-Z]+(?: [A-Z]+)*)?", rest):
            context, _, phonemes = written.partition("=")
            match = re.fullmatch(r"(.*)\[(.+)\](.*)", context)
            assert match, f"a rule has letters in brackets: {written}"
            rule = _Rule(_before(match[1]), match[2], _after(match[3]), tuple(phonemes.split()))
            found.setdefault(letter, []).append(rule)
    return found


def _pattern(context: str) -> str:
    return "".join(_CLASSES.get(sign, re.escape(sign)) for sign in context)


def _before(context: str) -> re.Pattern[str]:
    start = "^" if context.startswith("_") else ""
    return re.compile(f"{start}{_pattern(context)}$")


def _after(context: str) -> re.Pattern[str]:
    return re.compile(_pattern(context) + ("$" if context.endswith("_") else ""))
