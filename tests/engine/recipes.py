# recipes.py - how random checkpoints behave: distinct ids, how far honest ways differ, how far wrong ones. Needs a GPU and transformers; run by hand.
# Figures: evidence/recipes-h200-2026-12-01.txt. Each: mean regret / largest / share of argmaxes, against float32.
# SPDX-License-Identifier: MIT
import sys, torch, math, time
import transformers.models.qwen3.modeling_qwen3 as Q
from transformers import Qwen3Config, Qwen3ForCausalLM
torch.backends.cuda.matmul.allow_tf32=False
V=151936; torch.manual_seed(0)
S={'0.6b':(1024,28,16,8,3072),'4b':(2560,36,32,8,9728)}
def build(shape):
    H,L,NH,KV,I=S[shape]
    c=Qwen3Config(hidden_size=H,num_hidden_layers=L,num_attention_heads=NH,num_key_value_heads=KV,head_dim=128,intermediate_size=I,vocab_size=V,rms_norm_eps=1e-6,rope_theta=1e6,tie_word_embeddings=True,max_position_embeddings=40960,use_cache=True)
    c._attn_implementation='sdpa'
    with torch.device('cuda'):
        torch.set_default_dtype(torch.bfloat16); m=Qwen3ForCausalLM(c).eval(); torch.set_default_dtype(torch.float32)
    return m
def fill(m,shape,g,r,k,mode,tune=0.):
    H,L,NH,KV,I=S[shape]; G=torch.Generator('cuda').manual_seed(3)
    se=.25; co=cm=r*se/math.sqrt(2*L)
    for n,p in m.named_parameters():
        with torch.no_grad():
            def nrm(sd): p.copy_((torch.randn(p.shape,generator=G,device='cuda')*sd))
            if 'embed_tokens' in n: nrm(se)
            elif n=='model.norm.weight': p.copy_((torch.randint(0,2,p.shape,generator=G,device='cuda')*2-1)*k) if mode=='sign' else p.fill_(k)
            elif 'q_norm' in n or 'k_norm' in n: p.fill_(g)
            elif 'layernorm' in n: p.fill_(1)
            elif 'o_proj' in n: nrm(co/math.sqrt(NH*128)/.4)
            elif 'down' in n: nrm(cm/math.sqrt(I)/.6)
            elif 'lm_head' in n: pass
            else: nrm(1/math.sqrt(H))
def logits(m,x,P):
    with torch.no_grad():
        h=m.model(x).last_hidden_state[:,P-1:-1]; return m.lm_head(h).float()
orig=Q.apply_rotary_pos_emb
def inter(q,k,cos,sin,*a,**kw):
    def r(x):
        h=x.shape[-1]//2; c=cos[...,:h].unsqueeze(1); s=sin[...,:h].unsqueeze(1); e,o=x[...,::2],x[...,1::2]
        return torch.stack((e*c-o*s,o*c+e*s),-1).flatten(-2)
    return r(q),r(k)
def shift(q,k,cos,sin,*a,**kw):
    _,k2=orig(q,k,cos,sin); q2,_=orig(q,k,torch.roll(cos,-1,1),torch.roll(sin,-1,1)); return q2,k2
def quant(m,bits):
    old={}
    for n,p in m.named_parameters():
        if p.ndim==2 and 'embed' not in n:
            old[n]=p.data.clone(); s=p.data.float().abs().amax(1,keepdim=True)/(2**(bits-1)-1); p.data=((p.data.float()/s).round()*s).to(p.dtype)
    return old
def restore(m,old):
    for n,p in m.named_parameters():
        if n in old: p.data=old[n]
for shape in ['0.6b','4b']:
    m=build(shape); B,P,N=4,320,64
    for mode,g,r,k in [('sign',1.5,1,.5),('sign',1.5,2,.5),('sign',2,1,.5),('sign',2,2,.5),('sign',2.5,1,.5),('sign',1.5,4,.5)]:
        t0=time.time(); fill(m,shape,g,r,k,mode)
        x=torch.randint(0,V,(B,P),device='cuda')
        with torch.no_grad(): x=m.generate(x,max_new_tokens=N,min_new_tokens=N,do_sample=False,pad_token_id=0,eos_token_id=None)
        tok=x[:,P:]
        st={}
        m.float(); ref=logits(m,x,P); st['std']=ref.std().item(); m.bfloat16()
        best=ref.max(-1).values
        def fig(lo):
            a=lo.argmax(-1); rg=best-ref.gather(-1,a[...,None])[...,0]; return f'{rg.mean():.4f}/{rg.max():.2f}/{(rg==0).float().mean():.3f}'
        s=f'{shape} {mode} g{g} r{r} k{k} std {st["std"]:.1f} distinct {tok.unique().numel()/tok.numel():.2f} bf16 {fig(logits(m,x,P))}'
        m.set_attn_implementation('eager'); s+=f' eager {fig(logits(m,x,P))}'; m.set_attn_implementation('sdpa')
        Q.apply_rotary_pos_emb=inter; s+=f' | rope {fig(logits(m,x,P))}'; Q.apply_rotary_pos_emb=shift; s+=f' pos {fig(logits(m,x,P))}'; Q.apply_rotary_pos_emb=orig
        f=Q.Qwen3RMSNorm.forward; Q.Qwen3RMSNorm.forward=lambda self,h: f(self,h) if h.ndim==3 else h; s+=f' noqk {fig(logits(m,x,P))}'; Q.Qwen3RMSNorm.forward=f
        last=m.model.layers; m.model.layers=torch.nn.ModuleList(list(last)[:-1]); m.config.num_hidden_layers-=1; s+=f' skip {fig(logits(m,x,P))}'; m.model.layers=last; m.config.num_hidden_layers+=1
        mask=torch.ones(P+N,P+N,device='cuda').tril().bool()
        w=mask.clone(); w&=~torch.ones_like(w).tril(-256); 
        def lm(mm):
            with torch.no_grad():
                a=torch.zeros(mm.shape,device='cuda',dtype=torch.bfloat16).masked_fill(~mm,-1e9)[None,None].expand(B,1,-1,-1)
                h=m.model(x,attention_mask=a).last_hidden_state[:,P-1:-1]; return m.lm_head(h).float()
        try: s+=f' win256 {fig(lm(w))}'; d=mask.clone(); d.fill_diagonal_(False); d[0,0]=True; s+=f' drop {fig(lm(d))}'
        except Exception as e: s+=' win? '+str(e)[:40]
        for b in (8,4):
            o=quant(m,b); s+=f' int{b} {fig(logits(m,x,P))}'; restore(m,o)
        print(s,f'{time.time()-t0:.0f}s',flush=True)
    del m; torch.cuda.empty_cache()
